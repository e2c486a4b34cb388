"""Messages API frames become canonical events: text, thinking, tool calls, usage, finish."""

from typing import Any

import orjson
import pytest

from fairlead_llm import anthropic_messages, sse
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderUsage,
    ReasoningChunk,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    TextChunk,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
)

STOP = {"type": "message_stop"}


def frame(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\n".encode() + b"data: " + orjson.dumps(value) + b"   \n\n"


def message_start(id_: str = "msg_1", content: list[Any] | None = None, **usage: object) -> bytes:
    message = {"id": id_, "model": "m", "content": content or [], "usage": usage}
    return frame({"type": "message_start", "message": message})


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any], stop: bool = True) -> bytes:
    begin = {"type": "content_block_start", "index": index, "content_block": start}
    parts = [begin]
    parts += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    parts += [{"type": "content_block_stop", "index": index}] if stop else []
    return b"".join(map(frame, parts))


def text(index: int, *chunks: str) -> bytes:
    deltas = [{"type": "text_delta", "text": chunk} for chunk in chunks]
    return block(index, {"type": "text", "text": ""}, *deltas)


def call(index: int, *fragments: str, **start: object) -> bytes:
    deltas = [{"type": "input_json_delta", "partial_json": fragment} for fragment in fragments]
    whole = {"type": "tool_use", "id": "t1", "name": "look", "input": {}} | start
    return block(index, whole, *deltas)


def message_end(reason: str | None = "end_turn", usage: object = None, **delta: object) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None, **delta}
    return frame({"type": "message_delta", "delta": delta, "usage": usage}) + frame(STOP)


def play(*parts: bytes) -> list[ProviderEvent]:
    """Every event of a body that arrives in these chunks and then ends."""
    parser, state = sse.START, anthropic_messages.start()
    events: list[ProviderEvent] = []
    for part in parts:
        parser, frames = sse.feed(parser, part)
        for sse_frame in frames:
            state, new_events = anthropic_messages.step(state, sse_frame)
            events += new_events
    return [*events, *anthropic_messages.finish(state)]


def finish_of(*parts: bytes) -> StepFinish:
    last = play(*parts)[-1]
    assert isinstance(last, StepFinish)
    return last


def calls_of(*parts: bytes) -> list[ToolCall]:
    return [event for event in play(*parts) if isinstance(event, ToolCall)]


def test_text_streams_in_its_block_and_the_step_finishes_at_message_stop() -> None:
    ping = frame({"type": "ping"}) + frame({"type": "something_new", "value": 1})

    events = play(message_start(), ping, text(0, "Hel", "lo"), message_end())

    assert events == [
        TextStart("text-0"),
        TextChunk("text-0", "Hel"),
        TextChunk("text-0", "lo"),
        TextEnd("text-0"),
        StepFinish(
            "stop", ProviderUsage(), {"id": "msg_1", "model": "m", "stop_reason": "end_turn"}
        ),
    ]


def test_thinking_ends_with_its_signature() -> None:
    events = play(
        message_start(),
        block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "Hm"},
            {"type": "thinking_delta", "thinking": "m"},
            {"type": "signature_delta", "signature": "sig=="},
        ),
        message_end(),
    )

    assert events[:4] == [
        ReasoningStart("reasoning-0"),
        ReasoningChunk("reasoning-0", "Hm"),
        ReasoningChunk("reasoning-0", "m"),
        ReasoningEnd("reasoning-0", {"anthropic": {"signature": "sig=="}}),
    ]


def test_thinking_that_is_not_shown_keeps_its_signature() -> None:
    """O-06: reasoning without text is kept when it carries metadata."""
    signed = {"type": "signature_delta", "signature": "sig"}

    events = play(
        message_start(), block(0, {"type": "thinking", "thinking": ""}, signed), message_end()
    )

    assert events[:2] == [
        ReasoningStart("reasoning-0"),
        ReasoningEnd("reasoning-0", {"anthropic": {"signature": "sig"}}),
    ]


def test_redacted_thinking_is_reasoning_without_text() -> None:
    events = play(
        message_start(), block(0, {"type": "redacted_thinking", "data": "xyz"}), message_end()
    )

    assert events[:2] == [
        ReasoningStart("reasoning-0"),
        ReasoningEnd("reasoning-0", {"anthropic": {"redactedData": "xyz"}}),
    ]


def test_a_tool_call_streams_its_input_and_is_parsed_once() -> None:
    events = play(message_start(), call(0, "", '{"n":', " 1}"), message_end("tool_use"))

    assert events[:5] == [
        ToolInputStart("t1", "look"),
        ToolInputChunk("t1", '{"n":'),
        ToolInputChunk("t1", " 1}"),
        ToolInputEnd("t1"),
        ToolCall("t1", "look", {"n": 1}),
    ]
    assert getattr(events[5], "finish", None) == "tool-calls"


def test_parallel_calls_keep_their_order() -> None:
    calls = calls_of(
        message_start(), call(0, "{}", id="a"), call(1, '{"n":2}', id="b"), message_end("tool_use")
    )

    assert [(tool_call.id, tool_call.input) for tool_call in calls] == [("a", {}), ("b", {"n": 2})]


@pytest.mark.parametrize("json", [(), ("",), ("  ",)])
def test_a_call_without_arguments_has_an_empty_input(json: tuple[str, ...]) -> None:
    calls = calls_of(message_start(), call(0, *json), message_end("tool_use"))

    assert (calls[0].input, calls[0].invalid) == ({}, None)


def test_a_call_that_begins_with_its_input_needs_no_deltas() -> None:
    assert calls_of(message_start(), call(0, input={"n": 1}), message_end("tool_use"))[0].input == {
        "n": 1
    }


def test_a_call_by_code_remembers_its_caller_and_a_direct_one_nothing() -> None:
    code = {"type": "code_execution_20260120", "tool_id": "s1"}

    calls = calls_of(
        message_start(),
        call(0, id="a", caller=code),
        call(1, id="b", caller={"type": "direct"}),
        message_end("tool_use"),
    )

    assert calls[0].metadata == {"anthropic": {"type": "tool_use", "caller": code}}
    assert calls[1].metadata is None


def test_calls_that_the_message_begins_with_are_told() -> None:
    whole = {"type": "tool_use", "id": "t1", "name": "look", "input": {"n": 1}}

    events = play(message_start(content=[whole]), message_end("tool_use"))

    assert events[:3] == [
        ToolInputStart("t1", "look"),
        ToolInputEnd("t1"),
        ToolCall("t1", "look", {"n": 1}),
    ]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool-calls"),
        ("refusal", "content-filter"),
        ("pause_turn", "pause"),
        ("model_context_window_exceeded", "length"),
        ("a_new_one", "unknown"),
        (None, "unknown"),
    ],
)
def test_each_stop_reason_has_a_finish(reason: str | None, finish: str) -> None:
    assert finish_of(message_start(), text(0, "hi"), message_end(reason)).finish == finish


def test_an_answer_with_local_calls_wants_their_results_whatever_its_reason() -> None:
    assert finish_of(message_start(), call(0), message_end("end_turn")).finish == "tool-calls"


def test_usage_is_disjoint_and_the_later_report_wins_field_by_field() -> None:
    """D-34: no token is counted twice."""
    first = message_start(input_tokens=2037, cache_read_input_tokens=7, output_tokens=1)
    later: dict[str, object] = {"input_tokens": 15665, "cache_read_input_tokens": None}
    later |= {"cache_creation_input_tokens": 3, "output_tokens": 50}
    later |= {"output_tokens_details": {"thinking_tokens": 20}}

    usage = finish_of(first, text(0, "hi"), message_end(usage=later)).usage

    assert usage == ProviderUsage(
        15665, cache_read=7, cache_write=3, output=30, reasoning=20, total=15725
    )


def test_a_zero_after_a_count_says_nothing_and_the_unknown_stays_unknown() -> None:
    first = message_start(input_tokens=9, output_tokens=1)

    usage = finish_of(first, message_end(usage={"input_tokens": 0, "output_tokens": 4})).usage

    assert usage == ProviderUsage(9, output=4, total=13)


def test_several_message_deltas_finish_once_and_a_refusal_says_why() -> None:
    first = frame({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 2}})
    details = {"type": "refusal", "category": "cyber"}

    events = play(
        message_start(), first, message_end("refusal", {"output_tokens": 5}, stop_details=details)
    )

    assert len(events) == 1
    assert isinstance(events[0], StepFinish)
    assert events[0].usage.output == 5
    assert (events[0].metadata or {})["stop_details"] == details
