"""Tools that Anthropic runs itself, blocks without a canonical form, and unusual ends."""

from typing import Any

import orjson
import pytest

from fairlead_llm import anthropic_messages, sse
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    TextEnd,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)

SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
SEARCH_RESULTS = [{"type": "web_search_result", "url": "u", "encrypted_content": "EqgfCioIARgB=="}]


def answer(*blocks: tuple[dict[str, Any], list[dict[str, Any]]], reason: str = "end_turn") -> bytes:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "msg_1"}}]
    for index, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}})
    events.append({"type": "message_stop"})
    return b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events)


def play(body: bytes) -> list[ProviderEvent]:
    state = anthropic_messages.start()
    events: list[ProviderEvent] = []
    for frame in sse.feed(sse.START, body)[1]:
        state, new_events = anthropic_messages.step(state, frame)
        events += new_events
    return [*events, *anthropic_messages.finish(state)]


def result(content: object, kind: str = "web_search_tool_result", **more: object) -> dict[str, Any]:
    return {"type": kind, "tool_use_id": "srv_1", "content": content} | more


def test_a_hosted_call_and_its_result_are_told_as_executed() -> None:
    """O-11: inside the assistant's own turn."""
    fragment = {"type": "input_json_delta", "partial_json": '{"query":"x"}'}

    events = play(answer((SEARCH, [fragment]), (result(SEARCH_RESULTS), [])))

    assert events[:-1] == [
        ToolInputStart("srv_1", "web_search"),
        ToolInputChunk("srv_1", '{"query":"x"}'),
        ToolInputEnd("srv_1"),
        ToolCall(
            "srv_1",
            "web_search",
            {"query": "x"},
            executed=True,
            metadata={"anthropic": {"type": "server_tool_use"}},
        ),
        ToolResult(
            "srv_1", SEARCH_RESULTS, metadata={"anthropic": {"type": "web_search_tool_result"}}
        ),
    ]
    assert isinstance(events[-1], StepFinish)
    assert events[-1].finish == "stop"


def test_a_failed_hosted_result_is_an_error_that_keeps_its_content() -> None:
    content = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}

    tool_result = play(answer((SEARCH, []), (result(content), [])))[-2]

    assert isinstance(tool_result, ToolResult)
    assert tool_result.error
    assert tool_result.metadata == {
        "anthropic": {"type": "web_search_tool_result", "content": content}
    }


@pytest.mark.parametrize(
    "kind",
    [
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
        "one_of_tomorrow_tool_result",
    ],
)
def test_every_kind_of_hosted_result_is_told(kind: str) -> None:
    tool_result = play(answer((SEARCH, []), (result({"type": "x"}, kind), [])))[-2]

    assert tool_result == ToolResult("srv_1", {"type": "x"}, metadata={"anthropic": {"type": kind}})


def test_an_mcp_call_remembers_its_server_and_its_result_may_be_an_error() -> None:
    start = {"type": "mcp_tool_use", "id": "srv_1", "name": "echo", "server_name": "s", "input": {}}
    content = [{"type": "text", "text": "no"}]

    events = play(answer((start, []), (result(content, "mcp_tool_result", is_error=True), [])))

    call, tool_result = events[2:4]
    assert isinstance(call, ToolCall)
    assert call.executed
    assert call.metadata == {"anthropic": {"type": "mcp_tool_use", "server_name": "s"}}
    assert isinstance(tool_result, ToolResult)
    assert tool_result.error


def test_a_result_of_a_call_made_before_a_pause_is_kept_as_it_is() -> None:
    events = play(answer((result(SEARCH_RESULTS), [])))

    assert events[:2] == [
        ReasoningStart("reasoning-0"),
        ReasoningEnd("reasoning-0", {"anthropic": {"block": result(SEARCH_RESULTS)}}),
    ]


def test_a_second_result_of_one_call_is_kept_as_it_is() -> None:
    events = play(answer((SEARCH, []), (result(SEARCH_RESULTS), []), (result([]), [])))

    assert sum(isinstance(event, ToolResult) for event in events) == 1
    assert events[-2] == ReasoningEnd("reasoning-2", {"anthropic": {"block": result([])}})


def test_a_pause_is_a_finish_of_its_own() -> None:
    end = play(answer((SEARCH, []), reason="pause_turn"))[-1]

    assert isinstance(end, StepFinish)
    assert end.finish == "pause"


def test_a_context_window_that_leaves_no_room_for_an_answer_is_an_overflow() -> None:
    """G-37: only the texts and codes of an error decide."""
    last = play(answer(reason="model_context_window_exceeded"))[-1]

    assert isinstance(last, ProviderFailure)
    assert (last.kind, last.in_stream, last.retryable) == ("context-overflow", True, False)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "container_upload", "file_id": "f"},
        {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}},
        {"type": "of_tomorrow", "value": [1, {"x": None}]},
    ],
)
def test_a_block_of_unknown_type_is_kept_whole(block: dict[str, Any]) -> None:
    events = play(answer((block, [])))

    assert events[:2] == [
        ReasoningStart("reasoning-0"),
        ReasoningEnd("reasoning-0", {"anthropic": {"block": block}}),
    ]


def test_what_deltas_add_to_an_unknown_block_is_kept() -> None:
    added = {"type": "compaction_delta", "content": "Summary", "encrypted_content": "e"}

    events = play(answer(({"type": "compaction", "content": None}, [added])))

    whole = {"type": "compaction", "content": "Summary", "encrypted_content": "e"}
    assert events[1] == ReasoningEnd("reasoning-0", {"anthropic": {"block": whole}})


def test_citations_follow_their_text() -> None:
    citation = {"type": "web_search_result_location", "encrypted_index": "i"}
    content = {"type": "text_delta", "text": "So it is."}

    events = play(
        answer(
            (
                {"type": "text", "text": ""},
                [content, {"type": "citations_delta", "citation": citation}],
            )
        )
    )

    assert events[2:5] == [
        TextEnd("text-0"),
        ReasoningStart("text-0-citations"),
        ReasoningEnd("text-0-citations", {"anthropic": {"citations": [citation]}}),
    ]
