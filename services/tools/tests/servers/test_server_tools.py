"""The tools and answers of tool servers in Fairlead's types, and limits on their noise."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    JSONRPCNotification,
    JSONRPCResponse,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Tool as McpTool
from pydantic import ValidationError

from fairlead_schema.location import LocationRef
from fairlead_schema.tools import content as ours
from fairlead_service.config.configuration import Config
from fairlead_service.config.tool_servers import Credentials, ToolServerConfig
from fairlead_session.people.permission import Need, judge
from fairlead_tools.registry.registry import Registry, Scope
from fairlead_tools.registry.tool import CallContext, CallFailed, Result
from fairlead_tools.servers.hidden_values import Secrets
from fairlead_tools.servers.limits import NOISE_BYTES_MAX, NOISE_S, NOTIFICATIONS_MAX
from fairlead_tools.servers.pool import ToolServers, server_bindings
from fairlead_tools.servers.stdio import TOOLS_CHANGED, Flood, NotificationFilter, ServerCommand
from fairlead_tools.servers.tools import (
    ServerInfo,
    convert_result,
    convert_tools,
    retry_class,
    tool_name,
)
from services.tools.tests.conftest import AT, tool

OBJECT: dict[str, Any] = {"type": "object"}


async def never_called(_tool: str, _arguments: dict[str, Any]) -> CallToolResult:
    raise AssertionError("not called here")


SERVER = ServerInfo("s", never_called, 5.0)
TRUSTED = replace(SERVER, trusts_hints=True)
CONTEXT = CallContext(AT, LocationRef(directory="/w"), "build", "msg_a", "call_1", "wkr_a")


def mcp_tool(tool_name: str, **more: Any) -> McpTool:  # noqa: ANN401
    return McpTool(name=tool_name, **{"input_schema": OBJECT, **more})


@pytest.mark.parametrize(
    ("server_name", "name"),
    [("search", "s_search"), ("a.b/c d", "s_a_b_c_d"), ("é", "s__"), ("x" * 80, "s_" + "x" * 62)],
)
def test_a_name_is_made_one_that_providers_take(server_name: str, name: str) -> None:
    """J-01, J-40."""
    assert tool_name("s", server_name) == name


def test_tools_are_offered_by_name_and_what_cannot_be_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """J-38, J-40: the order of the list does not matter; a second equal name is refused."""
    odd = mcp_tool("odd", input_schema={"type": "array"})
    tools = [mcp_tool("b"), mcp_tool("a.x"), mcp_tool("a_x"), odd, mcp_tool("a")]

    with caplog.at_level(logging.WARNING):
        names = [tool.name for tool in convert_tools(SERVER, tools)]

    assert names == [tool.name for tool in convert_tools(SERVER, tools[::-1])]
    assert names == ["s_a", "s_a_x", "s_b"]
    assert "tool of a server left out: its name is taken" in caplog.messages


@pytest.mark.parametrize(
    ("hints", "kind"),
    [
        (None, "once"),
        ({"destructiveHint": True}, "once"),
        ({"idempotentHint": True}, "idempotent"),
        ({"readOnlyHint": True}, "pure"),
        ({"readOnlyHint": False, "idempotentHint": False}, "once"),
    ],
)
def test_only_a_server_that_says_so_is_run_again(hints: dict[str, bool] | None, kind: str) -> None:
    """J-40."""
    annotations = None if hints is None else ToolAnnotations.model_validate(hints)
    hinting = mcp_tool("a", annotations=annotations)

    assert retry_class(hinting, trusts_hints=True) == kind


def test_the_hints_of_a_server_are_not_believed_by_default() -> None:
    """B15: `readOnlyHint` let a call run again after a crash, because the server said so."""
    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True)
    hinting = mcp_tool("a", annotations=hints)

    assert convert_tools(SERVER, [hinting])[0].retry == "once"
    assert convert_tools(TRUSTED, [hinting])[0].retry == "pure"
    assert not Config.model_validate({"mcp": {"a": {"command": "x"}}}).mcp["a"].trust_hints


@pytest.mark.parametrize(("name", "saved"), [("search", ("search",)), ("*", ()), ("a?", ())])
async def test_the_tools_of_a_server_ask_by_default(name: str, saved: tuple[str, ...]) -> None:
    """B15: MCP tools arrived under a rule that allows everything."""
    (converted,) = convert_tools(SERVER, [mcp_tool(name)])
    needs = await converted.required_permissions(converted.input.model_validate({}), CONTEXT)

    assert needs == (Need("mcp:s", (name,), save=saved),)
    config = Config()
    assert judge(config.rules("build"), (), needs[0]) == "ask"
    assert judge(config.rules("general"), (), needs[0]) == "ask"
    assert judge(config.rules("plan"), (), needs[0]) == "deny"
    assert judge(config.rules("explore"), (), needs[0]) == "deny"


@pytest.mark.parametrize("reported", ["failed", "refused"])
async def test_no_error_of_a_server_shows_a_secret_of_it(reported: str) -> None:
    """B17: errors of calls went around the removal of secrets."""
    secrets = Secrets({"TOKEN": "s3cret"}, {"authorization": "Bearer k3y"})
    text = "bad token s3cret in Bearer k3y"

    async def answer(_tool: str, _arguments: dict[str, Any]) -> CallToolResult:
        if reported == "refused":
            raise CallFailed(text)
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)

    server = replace(SERVER, call=answer, hide=secrets.hide)
    (converted,) = convert_tools(server, [mcp_tool("a")])

    with pytest.raises(CallFailed) as failure:
        await converted.execute(converted.input.model_validate({}), CONTEXT)

    assert str(failure.value) == "bad token [hidden] in [hidden]"
    assert failure.value.__cause__ is None


def test_a_change_of_any_kind_is_another_revision() -> None:
    """J-06, J-40: an unchanged tool keeps its revision."""
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"description": "other"},
        {"input_schema": {**OBJECT, "properties": {"a": {}}}},
        {"output_schema": OBJECT},
        {"annotations": ToolAnnotations(read_only_hint=True)},
    )

    revisions = [
        convert_tools(TRUSTED, [mcp_tool("a", **change)])[0].info.revision for change in changes
    ]

    assert len(set(revisions)) == len(changes)
    assert convert_tools(TRUSTED, [mcp_tool("a")])[0].info.revision == revisions[0]


def test_text_and_media_are_told_as_content() -> None:
    """J-22, J-23: media become files."""
    answer = CallToolResult(
        content=[
            TextContent(type="text", text="t"),
            ImageContent(type="image", data="AA==", mime_type="image/png"),
            AudioContent(type="audio", data="BB==", mime_type="audio/wav"),
            EmbeddedResource(
                type="resource", resource=TextResourceContents(uri="file:///a", text="inside")
            ),
            EmbeddedResource(
                type="resource", resource=BlobResourceContents(uri="file:///b", blob="CC==")
            ),
            ResourceLink(type="resource_link", name="more", uri="http://a.example/"),
        ],
        structured_content={"a": 1},
    )

    result = convert_result(answer)

    assert result.output == {"a": 1}
    assert result.content == (
        ours.TextContent(text="t"),
        ours.FileContent(uri="data:image/png;base64,AA==", mime="image/png"),
        ours.FileContent(uri="data:audio/wav;base64,BB==", mime="audio/wav"),
        ours.TextContent(text="inside"),
        ours.FileContent(
            uri="data:application/octet-stream;base64,CC==",
            mime="application/octet-stream",
            name="file:///b",
        ),
        ours.TextContent(text="more: http://a.example/"),
    )


@pytest.mark.parametrize("words", ["no such row", ""])
def test_an_error_is_told_in_the_servers_words(words: str) -> None:
    """J-20."""
    answer = CallToolResult(content=[TextContent(type="text", text=words)], is_error=True)

    with pytest.raises(CallFailed, match=words or "gave no reason"):
        convert_result(answer)


def test_answers_are_heard_always_and_notifications_up_to_a_rate() -> None:
    """J-40: notifications above the rate are dropped."""
    now = 10.0
    notifications = NotificationFilter(now=lambda: now)
    news = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/x"))
    noise = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/message"))
    answer = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))

    assert (
        sum(notifications.accepts(news) for _ in range(10 * NOTIFICATIONS_MAX)) == NOTIFICATIONS_MAX
    )
    assert (
        notifications.accepts(answer),
        notifications.accepts(noise),
        notifications.accepts(news),
    ) == (True, False, False)
    now = 11.0
    assert (notifications.accepts(news), notifications.accepts(noise)) == (True, False)


def test_news_of_other_tools_are_told_later_rather_than_never() -> None:
    """J-40: a dropped change notice is kept, because the last one may be the one that counts."""
    notifications = NotificationFilter(now=lambda: 10.0)
    news = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/x"))
    tools_changed = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=TOOLS_CHANGED))
    assert (notifications.accepts(tools_changed), notifications.late) == (True, None)
    for _ in range(NOTIFICATIONS_MAX):
        notifications.accepts(news)
    assert notifications.late is None

    assert [notifications.accepts(tools_changed) for _ in range(3)] == [False] * 3
    assert notifications.late is tools_changed


def test_what_nobody_listens_to_is_bounded_in_a_span() -> None:
    """J-40: a server that sends more noise is cut off; a pause resets the count."""
    now = 0.0
    notifications, half = NotificationFilter(now=lambda: now), b"x" * (NOISE_BYTES_MAX // 2)
    for _ in range(3):
        notifications.count_noise(half)
        notifications.count_noise(half)
        now += NOISE_S
    notifications.count_noise(half)
    notifications.count_noise(half)

    with pytest.raises(Flood):
        notifications.count_noise(b"!")


def test_a_process_sees_what_is_listed_and_what_it_was_given() -> None:
    """J-40."""
    own = {"PATH": "/bin", "HOME": "/h", "SECRET": "s", "FAIRLEAD_NATS_URL": "x"}

    assert ServerCommand(("x",), {"A": "1"}).environment(own) == {
        "PATH": "/bin",
        "HOME": "/h",
        "A": "1",
    }


async def test_no_result_of_a_server_shows_a_credential_of_it() -> None:
    """Issue 12, item 9: no event holds a secret. Short and plain values stay, to spoil no result."""
    credentials = Credentials(
        env={"MODE": "verbose-mode", "LEVEL": "1"},
        env_from={"TOKEN": "NAMED"},
        headers={"authorization": "Bearer k3y-of-the-server"},
    )
    environment = {"NAMED": "t0ken-of-the-server"}
    secrets = Secrets(
        credentials.variables(environment),
        credentials.header_values(environment),
        credentials.secret_values(environment),
    )
    text = "t0ken-of-the-server k3y-of-the-server verbose-mode 1"

    async def answer(_tool: str, _arguments: dict[str, Any]) -> CallToolResult:
        shown = TextContent(type="text", text=text)
        return CallToolResult(content=[shown], structured_content={"deep": [{"text": text}, 1]})

    server = replace(SERVER, call=answer, hide_in_result=secrets.hide_in_result)
    (converted,) = convert_tools(server, [mcp_tool("a")])

    result = await converted.execute(converted.input.model_validate({}), CONTEXT)

    safe = "[hidden] [hidden] verbose-mode 1"
    assert result == Result({"deep": [{"text": safe}, 1]}, content=(ours.TextContent(text=safe),))
    assert secrets.hide("bad k3y-of-the-server") == "bad [hidden]"


def test_secrets_come_from_variables_and_files_and_are_hidden(tmp_path: Any) -> None:  # noqa: ANN401
    """J-40: a tenant's values take precedence over the common ones."""
    (tmp_path / "key").write_text("fromfile\n")
    under = Credentials(env={"A": "1", "B": "2"}, headers_from={"authorization": "TOKEN"})
    over = Credentials(env={"B": "3"}, env_file={"C": str(tmp_path / "key")}).merge_over(under)

    assert over.variables({}) == {"A": "1", "B": "3", "C": "fromfile"}
    assert over.header_values({"TOKEN": "t0ken"}) == {"authorization": "t0ken"}
    with pytest.raises(KeyError):
        over.header_values({})
    hidden = Secrets({"C": "fromfile", "E": ""}, {"h": "t0ken"}).hide("fromfile and t0ken")
    assert hidden == "[hidden] and [hidden]"


@pytest.mark.parametrize(
    "wrong",
    [
        {"mcp": {"a": {}}},
        {"mcp": {"a": {"command": "x", "url": "http://y"}}},
        {"mcp": {"a": {"url": "ftp://y"}}},
        {"mcp": {"not a name": {"command": "x"}}},
        {"mcp": {}, "tenant": {"acme": {"mcp": {"a": {}}}}},
    ],
)
def test_a_server_that_makes_no_sense_is_a_mistake(wrong: dict[str, Any]) -> None:
    """J-40."""
    with pytest.raises(ValidationError):
        Config.model_validate(wrong)


def test_everybodys_seat_is_not_for_who_has_an_own_one() -> None:
    """J-15, J-40: a disabled server has no binding."""
    config = Config.model_validate(
        {
            "mcp": {"a": {"command": "x"}, "off": {"command": "x", "enabled": False}},
            "tenant": {"acme": {"mcp": {"a": {"env": {"K": "v"}}}}},
        }
    )

    assert [
        (binding.name, binding.tenant, binding.except_tenants)
        for binding in server_bindings(config)
    ] == [
        ("a", None, frozenset({"acme"})),
        ("a", "acme", frozenset()),
    ]
    assert isinstance(server_bindings(config)[0].server, ToolServerConfig)


def test_names_that_collide_are_refused_in_configured_order() -> None:
    """J-38, J-40: the order of arrival does not matter, and the service's own tools come first."""
    registry = Registry()
    registry.register(tool("own"))
    config = Config.model_validate({"mcp": {n: {"command": "x"} for n in ("a", "b")}})
    servers = ToolServers(config, registry)

    for seat, description in ((1, "b"), (0, "a")):
        tools = (tool("same", description=description), tool("own", description=description))
        servers._on_tools(seat, tools)  # noqa: SLF001

    descriptions = {
        tool.name: tool.description for tool in registry.catalog(Scope("default", "/w")).tools
    }
    assert descriptions == {"own": "own", "same": "a"}
