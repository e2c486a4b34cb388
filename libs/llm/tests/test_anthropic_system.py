"""Chronological system messages and cache breakpoints on the Messages API."""

from itertools import pairwise
from typing import Any

import orjson
import pytest

from fairlead_llm import anthropic_messages
from fairlead_llm.errors import UnsendableRequest
from fairlead_schema.provider.request import (
    AssistantTurn,
    ModelRequest,
    SystemTurn,
    TextPart,
    ToolCallPart,
    ToolDefinition,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)

MARK = {"type": "ephemeral"}
USER = UserTurn((TextPart("hi"),))
ANSWER = AssistantTurn((TextPart("yes"),))
CALLS = AssistantTurn((ToolCallPart("a", "look", {}), ToolCallPart("b", "look", {})))
NEWS = SystemTurn("x < y")
WRAPPED = {"type": "text", "text": "<system-update>\nx &lt; y\n</system-update>"}
NATIVE = {"role": "system", "content": [{"type": "text", "text": "x < y"}]}
HOSTED_SEARCH = AssistantTurn(
    (
        ToolCallPart(
            "s",
            "web_search",
            {},
            executed=True,
            metadata={"anthropic": {"type": "server_tool_use"}},
        ),
    )
)
TOOLS = (ToolDefinition("one", "", {}), ToolDefinition("two", "", {}))


def result(call_id: str) -> ToolTurn:
    return ToolTurn(ToolResultPart(call_id, "look", "text", "ok"))


def messages_for(*turns: Turn, native: bool = True) -> list[dict[str, Any]]:
    options = {"native_system": native, "cache": False}
    body = anthropic_messages.body(ModelRequest("m", turns=turns, options=options))
    assert "native_system" not in body
    messages: list[dict[str, Any]] = body["messages"]
    return messages


def body(*turns: Turn, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - request fields
    return anthropic_messages.body(ModelRequest("m", turns=turns or (USER,), **fields))


@pytest.mark.parametrize("turns", [(USER, ANSWER, NEWS), (ANSWER, NEWS, ANSWER), (NEWS, ANSWER)])
def test_an_update_is_escaped_user_text_at_its_position(turns: tuple[Turn, ...]) -> None:
    """O-18, O-20: the API allows no system message without a user before it."""
    at = turns.index(NEWS)

    assert messages_for(*turns, native=False)[at] == {"role": "user", "content": [WRAPPED]}
    assert messages_for(*turns)[at] == {"role": "user", "content": [WRAPPED]}


def test_a_wrapped_update_joins_a_directly_preceding_user_message() -> None:
    """O-19: a message of its own only without a user message before it."""
    messages = messages_for(USER, NEWS, NEWS, native=False)

    assert len(messages) == 1
    assert messages[0]["content"][1:] == [WRAPPED, WRAPPED]


def test_a_wrapped_update_follows_the_results_in_their_message() -> None:
    """O-19: a message of its own only without a user message before it."""
    messages = messages_for(USER, CALLS, result("a"), result("b"), NEWS, native=False)

    assert [block["type"] for block in messages[2]["content"]] == [
        "tool_result",
        "tool_result",
        "text",
    ]


@pytest.mark.parametrize(
    "before",
    [(USER,), (USER, CALLS, result("a"), result("b")), (USER, HOSTED_SEARCH)],
    ids=["a user", "a result", "a hosted tool"],
)
@pytest.mark.parametrize("after", [(), (ANSWER,)], ids=["nothing", "an assistant"])
def test_a_model_that_knows_the_role_gets_it_in_its_places(
    before: tuple[Turn, ...], after: tuple[Turn, ...]
) -> None:
    """O-20: the native role only where the API allows it."""
    assert NATIVE in messages_for(*before, NEWS, *after)
    assert NATIVE not in messages_for(*before, NEWS, *after, native=False)


@pytest.mark.parametrize(
    "turns", [(USER, NEWS, USER), (USER, NEWS, NEWS), (USER, ANSWER, NEWS), (NEWS,)]
)
def test_elsewhere_even_such_a_model_gets_the_wrapped_form(turns: tuple[Turn, ...]) -> None:
    """O-20: the native role only where the API allows it."""
    assert NATIVE not in messages_for(*turns)


def test_a_place_is_judged_by_what_is_sent_not_by_what_is_left_out() -> None:
    """O-20: the native role only where the API allows it."""
    empty = AssistantTurn((TextPart(""),))

    assert NATIVE not in messages_for(USER, NEWS, empty, USER)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    "turns",
    [(USER, CALLS, NEWS, result("a")), (USER, CALLS, result("a"), NEWS, result("b"))],
)
def test_an_update_between_a_call_and_its_result_is_refused(
    turns: tuple[Turn, ...], *, native: bool
) -> None:
    """O-21; O-22 holds by type: a system turn has text and nothing else."""
    with pytest.raises(UnsendableRequest):
        messages_for(*turns, native=native)


def test_the_last_tool_the_last_system_part_and_the_latest_user_message_are_marked() -> None:
    """O-27: tools first, then system, then the latest user message."""
    request_body = body(USER, ANSWER, USER, tools=TOOLS, system=("one", "two"))

    assert ["cache_control" in tool for tool in request_body["tools"]] == [False, True]
    assert ["cache_control" in part for part in request_body["system"]] == [False, True]
    marks = [message["content"][-1].get("cache_control") for message in request_body["messages"]]
    assert marks == [None, None, MARK]


def test_in_a_tool_loop_the_latest_user_message_is_the_last_result() -> None:
    """O-27: tools first, then system, then the latest user message."""
    messages = body(USER, CALLS, result("a"), result("b"))["messages"]

    assert "cache_control" not in messages[0]["content"][0]
    assert ["cache_control" in block for block in messages[2]["content"]] == [False, True]


def test_at_most_four_marks_are_sent_tools_first() -> None:
    """O-27: tools first, then system, then the latest user message."""
    marked_tools = [{"type": "x", "name": str(n), "cache_control": MARK} for n in range(3)]

    request_body = body(
        USER, tools=TOOLS, system=("s",), options={"tools": [*marked_tools, {"name": "last"}]}
    )

    assert "cache_control" in request_body["tools"][-1]
    assert "cache_control" not in request_body["system"][0]
    assert "cache_control" not in request_body["messages"][0]["content"][0]


def test_a_mark_that_is_there_already_is_kept() -> None:
    """O-27: tools first, then system, then the latest user message."""
    hour = {"type": "ephemeral", "ttl": "1h"}

    request_body = body(USER, options={"tools": [{"name": "t", "cache_control": hour}]})

    assert request_body["tools"][0]["cache_control"] == hour


def test_marks_may_live_longer_or_not_be_at_all() -> None:
    assert body(options={"cache": "1h"})["messages"][0]["content"][0]["cache_control"] == {
        "type": "ephemeral",
        "ttl": "1h",
    }
    assert b"cache_control" not in orjson.dumps(body(options={"cache": False}))


def test_a_tool_that_is_loaded_later_is_not_marked() -> None:
    request_body = body(USER, options={"tools": [{"name": "t", "defer_loading": True}]})

    assert "cache_control" not in request_body["tools"][0]


def test_each_request_of_a_loop_begins_with_the_one_before_it_up_to_its_last_message() -> None:
    loop = (USER, CALLS, result("a"), result("b"), ANSWER, USER)
    requests = [body(*loop[:end], tools=TOOLS, system=("s",)) for end in (1, 4, 6)]

    for earlier, later in pairwise(requests):
        short = orjson.dumps(earlier | {"messages": earlier["messages"][:-1]})
        assert orjson.dumps(later).startswith(short.removesuffix(b"]}"))
