"""websearch against a real server on loopback: the request, the result, and the hidden key."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import ValidationError

from fairlead_schema.location import LocationRef
from fairlead_service.config.sections import ToolsConfig
from fairlead_testing.web_server import Site, reply, site
from fairlead_tools.builtin.websearch import (
    NOTHING,
    REPLY_BYTES_MAX,
    WebsearchInput,
    execute,
    needs,
    parse_results,
    provider,
    tools,
)
from fairlead_tools.registry.tool import CallContext, CallFailed
from services.tools.tests.conftest import AT

CONTEXT = CallContext(AT, LocationRef(directory="/w"), "build", "msg_a", "call_1", "wkr_a")
KEY = "sk-very-secret"


@pytest.fixture
async def web() -> AsyncIterator[Site]:
    async with site() as server:
        yield server


def service_config(web: Site, **more: object) -> ToolsConfig:
    service = {"url": web.url("/search"), "api_key_env": "SEARCH_KEY", **more}
    return ToolsConfig.model_validate({"websearch": {"acme": service}})


def search_reply(*texts: str, **more: object) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    return {"jsonrpc": "2.0", "id": 1, "result": {"content": content, **more}}


def set_answer(web: Site, body: object, mime: str = "application/json") -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    web.pages["/search"] = reply(raw, mime=mime)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_KEY", KEY)


def test_its_input_has_defaults_and_limits() -> None:
    """L-80."""
    assert WebsearchInput(query="q").numResults == 8
    for wrong in (
        {"query": ""},
        {"query": "q", "numResults": 21},
        {"query": "q", "contextMaxCharacters": 50_001},
        {"query": "q", "type": "odd"},
    ):
        with pytest.raises(ValidationError):
            WebsearchInput.model_validate(wrong)


async def test_a_search_is_one_call_of_a_tool(web: Site) -> None:
    """L-80, L-82: the key is in a header and nowhere else."""
    set_answer(web, search_reply("one", "two"))
    input_ = WebsearchInput(query="nats", numResults=3, type="fast")

    results = await execute(service_config(web, tool="find"), input_, CONTEXT)

    ((_path, headers, body),) = web.asked
    assert json.loads(body)["params"] == {
        "name": "find",
        "arguments": {"query": "nats", "numResults": 3, "type": "fast"},
    }
    assert headers["authorization"] == f"bearer {KEY}"
    assert (results.provider, results.output) == ("acme", "one\n\ntwo")
    assert (await needs(input_, CONTEXT))[0].resources == ("nats",)


async def test_a_key_may_go_in_another_header(web: Site) -> None:
    """L-82."""
    set_answer(web, search_reply("one"))

    await execute(
        service_config(web, api_key_header="x-api-key"), WebsearchInput(query="q"), CONTEXT
    )

    assert web.asked[0][1]["x-api-key"] == KEY


def test_the_provider_is_the_one_that_is_set_else_one_per_session() -> None:
    """L-81: a session always has the same provider, and sessions spread over several."""
    services = {name: {"url": "http://a.example/"} for name in ("a", "b")}
    without_provider = ToolsConfig.model_validate({"websearch": services})
    with_provider = ToolsConfig.model_validate({"websearch": services, "websearch_provider": "b"})
    providers = [provider(without_provider, f"ses_{n}") for n in range(50)]

    assert providers == [provider(without_provider, f"ses_{n}") for n in range(50)]
    assert set(providers) == {"a", "b"}
    assert {provider(with_provider, f"ses_{n}") for n in range(50)} == {"b"}
    with pytest.raises(ValidationError):
        ToolsConfig.model_validate({"websearch": services, "websearch_provider": "c"})


async def test_an_event_stream_is_read_too(web: Site) -> None:
    """L-82."""
    stream = f": hello\nevent: message\ndata: {json.dumps(search_reply('streamed'))}\n\n"
    set_answer(web, stream.encode(), "text/event-stream")

    results = await execute(service_config(web), WebsearchInput(query="q"), CONTEXT)

    assert results.output == "streamed"


@pytest.mark.parametrize(
    "empty", [search_reply(), search_reply(""), search_reply("  "), {"result": {}}]
)
async def test_nothing_found_is_a_fixed_text(web: Site, empty: dict[str, Any]) -> None:
    """L-82."""
    set_answer(web, empty)

    assert (
        await execute(service_config(web), WebsearchInput(query="q"), CONTEXT)
    ).output == NOTHING


async def test_a_key_never_reaches_what_is_told(web: Site) -> None:
    """L-82: the tool hides the key even in a reply that repeats it."""
    set_answer(web, search_reply(f"your key is {KEY}"))
    results = await execute(service_config(web), WebsearchInput(query="q"), CONTEXT)
    set_answer(web, {"error": {"code": -1, "message": f"bad key {KEY}"}})
    with pytest.raises(CallFailed) as error:
        await execute(service_config(web), WebsearchInput(query="q"), CONTEXT)

    assert KEY not in results.output + str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (reply(b"no", status="500 Oh"), "status 500"),
        (reply(b"rubbish", mime="application/json"), "unreadable answer"),
        (reply(b"[]", mime="application/json"), "unreadable answer"),
        (reply(b"x" * (REPLY_BYTES_MAX + 1)), "too large"),
        (reply(json.dumps(search_reply("why", isError=True)).encode()), "The search failed: why"),
    ],
)
async def test_what_is_no_result_is_a_typed_failure(web: Site, page: bytes, message: str) -> None:
    """L-80: a reply has at most 256 KiB."""
    web.pages["/search"] = page

    with pytest.raises(CallFailed, match=message):
        await execute(service_config(web), WebsearchInput(query="q"), CONTEXT)


async def test_a_service_without_its_key_is_not_asked(
    web: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-82."""
    monkeypatch.delenv("SEARCH_KEY")

    with pytest.raises(CallFailed, match="SEARCH_KEY is not set"):
        await execute(service_config(web), WebsearchInput(query="q"), CONTEXT)
    assert web.asked == []


def test_without_a_service_there_is_no_tool() -> None:
    """L-80."""
    assert tools(ToolsConfig()) == ()
    assert parse_results(json.dumps(search_reply("x"))) == "x"
