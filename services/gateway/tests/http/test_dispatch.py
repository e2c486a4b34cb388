"""The checks before an operation: their order, and what each refusal says."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.errors import MESSAGE_LENGTH_MAX
from services.gateway.tests.conftest import Append

PROMPT = "/api/session/ses_1/prompt"
SESSION_PATHS = ("", "/context", "/history", "/event", "/stream", "/message", "/message/msg_1")


@pytest.mark.parametrize("path", SESSION_PATHS)
async def test_i39_an_unknown_session_is_not_found_on_every_session_route(
    client: httpx.AsyncClient, path: str
) -> None:
    answer = await client.get(f"/api/session/ses_unknown{path}")

    assert answer.status_code == 404
    assert answer.json() == {
        "_tag": "SessionNotFoundError",
        "sessionID": "ses_unknown",
        "message": "Session not found: ses_unknown",
    }


@pytest.mark.parametrize("path", SESSION_PATHS)
@pytest.mark.parametrize("session_id", ["nope", "ses", "ses_a.b", "ses_*", "ses_%0A"])
async def test_a_malformed_session_id_is_refused_before_anything_else(
    client: httpx.AsyncClient, path: str, session_id: str
) -> None:
    answer = await client.get(f"/api/session/{session_id}{path}?limit=x&after=x")

    assert answer.status_code == 400
    assert answer.json() == {
        "_tag": "InvalidRequestError",
        "field": "sessionID",
        "message": "Invalid session ID",
    }


async def test_a10_an_unknown_session_is_reported_before_a_bad_body(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.post("/api/session/ses_unknown/prompt", content=b"{")

    assert answer.json()["_tag"] == "SessionNotFoundError"


async def test_a_bad_query_is_refused_with_its_field(
    client: httpx.AsyncClient, append: Append
) -> None:
    await append("ses_1")

    answer = await client.get("/api/session/ses_1/history?limit=101")

    assert answer.status_code == 400
    assert answer.json()["_tag"] == "InvalidRequestError"
    assert (answer.json()["kind"], answer.json()["field"]) == ("Query", "limit")


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "1e2", " 5", "+5", "", "9" * 30])
async def test_i36_a_limit_is_a_decimal_number_in_range(
    client: httpx.AsyncClient, append: Append, limit: str
) -> None:
    await append("ses_1")

    answer = await client.get("/api/session/ses_1/history", params={"limit": limit})

    assert (answer.status_code, answer.json()["field"]) == (400, "limit")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", None),
        (b"{", None),
        (b"\xff", None),
        (b"null", None),
        (b"[]", None),
        (b"{}", "prompt"),
        (b'{"prompt": null}', "prompt"),
        (b'{"prompt": {"text": null}}', "prompt.text"),
        (b'{"prompt": {"text": 5}}', "prompt.text"),
        (b'{"prompt": {"text": "x", "files": [{"uri": ""}]}}', "prompt.files.0.uri"),
        (b'{"prompt": {"text": "x"}, "id": "evt_1"}', "id"),
        (b'{"prompt": {"text": "x"}, "id": null}', "id"),
        (b'{"prompt": {"text": "x"}, "delivery": "later"}', "delivery"),
        (b'{"prompt": {"text": "x"}, "resume": "perhaps"}', "resume"),
    ],
)
async def test_a_bad_body_is_refused_with_its_field(
    client: httpx.AsyncClient, append: Append, body: bytes, field: str | None
) -> None:
    await append("ses_1")

    answer = await client.post(PROMPT, content=body)

    assert answer.status_code == 400
    assert answer.json()["_tag"] == "InvalidRequestError"
    assert (answer.json()["kind"], answer.json().get("field")) == ("Body", field)


@pytest.mark.parametrize("content_type", ["text/plain", "multipart/form-data", "application/xml"])
async def test_an_unknown_content_type_is_415_in_plain_text(
    client: httpx.AsyncClient, append: Append, content_type: str
) -> None:
    await append("ses_1")

    answer = await client.post(PROMPT, content=b"{}", headers={"content-type": content_type})

    assert answer.status_code == 415
    assert answer.headers["content-type"].startswith("text/plain")


async def test_a_declared_body_over_the_limit_is_413(
    client: httpx.AsyncClient, append: Append
) -> None:
    await append("ses_1")

    answer = await client.post(PROMPT, json={"prompt": {"text": "x" * 3000}})

    assert (answer.status_code, answer.json()["_tag"]) == (413, "TooLargeError")


async def test_a_body_that_grows_over_the_limit_is_413(
    client: httpx.AsyncClient, append: Append
) -> None:
    await append("ses_1")

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 1000

    answer = await client.post(PROMPT, content=chunks())

    assert (answer.status_code, answer.json()["_tag"]) == (413, "TooLargeError")


async def test_a_long_reason_is_cut(client: httpx.AsyncClient, append: Append) -> None:
    await append("ses_1")

    answer = await client.get("/api/session/ses_1/event", params={"after": "9" * 16})
    many = await client.post(PROMPT, content=b'{"prompt":{"text":"x"},"' + b"k" * 1500)

    assert answer.json()["_tag"] == "InvalidCursorError"
    assert len(many.json()["message"]) < MESSAGE_LENGTH_MAX + 40


async def test_an_unknown_route_is_404_with_a_json_body(client: httpx.AsyncClient) -> None:
    for path in ("/nope", "/api/session/", "/api/session/ses_1/nope"):
        answer = await client.get(path)

        assert (answer.status_code, answer.json()["_tag"]) == (404, "InvalidRequestError")


async def test_a_wrong_method_is_405_and_says_what_is_allowed(client: httpx.AsyncClient) -> None:
    answer = await client.delete("/api/session")

    assert (answer.status_code, answer.json()["_tag"]) == (405, "InvalidRequestError")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "POST"}
    assert (await client.head("/api/session/ses_1/event")).status_code == 405


@pytest.mark.parametrize("method", ["DELETE", "POST", "PUT", "HEAD", "OPTIONS", "TRACE", "BREW"])
async def test_a_fixed_path_is_never_taken_for_an_id(
    client: httpx.AsyncClient, method: str
) -> None:
    """`/api/session/active` is no session, whatever the method."""
    answer = await client.request(method, "/api/session/active")

    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "path",
    [
        "//api/health",
        "/api//health",
        "/api/%2e%2e/api/health/",
        "/api/session/..%2fhealth",
        "/api/health;x=1",
        "/api/health%00",
        "/API/health",
        "/api/health/",
    ],
)
async def test_other_spellings_of_a_path_lead_nowhere(client: httpx.AsyncClient, path: str) -> None:
    request = httpx.Request("GET", "http://127.0.0.1/")
    request.url = httpx.URL("http://127.0.0.1", raw_path=path.encode())
    answer = await client.send(request)

    assert answer.status_code in {400, 404}


class TestWithASlowClient:
    """The body of a request never ends."""

    @pytest.fixture
    def settings(self) -> GatewaySettings:
        return GatewaySettings(directory="/srv", body_timeout_s=0.05)

    async def test_a_body_that_does_not_arrive_is_408_and_ends_the_connection(
        self, client: httpx.AsyncClient, append: Append
    ) -> None:
        """B14: a slow body holds no request for ever."""
        await append("ses_1")

        async def drip() -> AsyncIterator[bytes]:
            while True:
                yield b" "
                await asyncio.sleep(0.01)

        async with asyncio.timeout(20):
            answer = await client.post(PROMPT, content=drip())

        assert (answer.status_code, answer.headers["connection"]) == (408, "close")
