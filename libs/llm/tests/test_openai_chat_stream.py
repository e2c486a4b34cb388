"""Chat Completions frames become canonical events, for the habits of every vendor."""

from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_llm import openai_chat, sse
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
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

DONE = b"data: [DONE]\n\n"


def frame(value: object) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def chunk(delta: dict[str, Any] | None = None, reason: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": reason}
    return frame({"id": "answer-1", "model": "m", "choices": [choice], **more})


def say(text: str) -> bytes:
    return chunk({"content": text})


def call(index: int | None = 0, id_: str | None = None, **function: object) -> bytes:
    fragment: dict[str, Any] = {"function": function}
    if index is not None:
        fragment["index"] = index
    if id_ is not None:
        fragment["id"] = id_
    return chunk({"tool_calls": [fragment]})


def play(*parts: bytes) -> list[ProviderEvent]:
    """Every event of a body that arrives in these chunks and then ends."""
    parser, state = sse.START, openai_chat.start()
    events: list[ProviderEvent] = []
    for part in parts:
        parser, frames = sse.feed(parser, part)
        for sse_frame in frames:
            state, new_events = openai_chat.step(state, sse_frame)
            events += new_events
    return [*events, *openai_chat.finish(state)]


def finish_of(*parts: bytes) -> StepFinish:
    last = play(*parts)[-1]
    assert isinstance(last, StepFinish)
    return last


def failure_of(*parts: bytes) -> ProviderFailure:
    last = play(*parts)[-1]
    assert isinstance(last, ProviderFailure)
    return last


def calls_of(*parts: bytes) -> list[ToolCall]:
    return [event for event in play(*parts) if isinstance(event, ToolCall)]


def test_text_streams_in_one_block_and_the_step_finishes_at_the_end_marker() -> None:
    events = play(
        chunk({"role": "assistant", "content": ""}), say("Hel"), say("lo"), chunk({}, "stop"), DONE
    )

    assert events == [
        TextStart("text-0"),
        TextChunk("text-0", "Hel"),
        TextChunk("text-0", "lo"),
        TextEnd("text-0"),
        StepFinish(
            "stop", ProviderUsage(), {"id": "answer-1", "model": "m", "finish_reason": "stop"}
        ),
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_closes_when_text_begins_and_remembers_its_field(field: str) -> None:
    events = play(chunk({field: "Hm"}), chunk({field: "m"}), say("Yes"), chunk({}, "stop"), DONE)

    assert events[:6] == [
        ReasoningStart("reasoning-0"),
        ReasoningChunk("reasoning-0", "Hm"),
        ReasoningChunk("reasoning-0", "m"),
        ReasoningEnd("reasoning-0", {"field": field}),
        TextStart("text-1"),
        TextChunk("text-1", "Yes"),
    ]


def test_reasoning_details_are_joined_by_index_with_signature_and_data_kept() -> None:
    def detail(**more: object) -> bytes:
        return chunk({"reasoning_details": [more], "reasoning": more.get("text", "")})

    events = play(
        detail(type="reasoning.text", index=0, text="One ", format="f"),
        detail(type="reasoning.text", index=0, text="two", format="f"),
        detail(type="reasoning.text", index=0, signature="sig"),
        detail(type="reasoning.encrypted", index=1, data="secret"),
        chunk({}, "stop"),
        DONE,
    )

    text = {"type": "reasoning.text", "index": 0, "text": "One two", "format": "f"}
    assert (
        ReasoningEnd(
            "reasoning-0",
            {
                "reasoning_details": [
                    {**text, "signature": "sig"},
                    {"type": "reasoning.encrypted", "index": 1, "data": "secret"},
                ]
            },
        )
        in events
    )
    assert [e.text for e in events if isinstance(e, ReasoningChunk)] == ["One ", "two"]


def test_encrypted_reasoning_without_text_is_a_block_with_metadata() -> None:
    encrypted = {"type": "reasoning.encrypted", "data": "x"}

    events = play(chunk({"reasoning_details": [encrypted]}), chunk({}, "stop"), DONE)

    assert events[:2] == [
        ReasoningStart("reasoning-0"),
        ReasoningEnd("reasoning-0", {"reasoning_details": [encrypted]}),
    ]


def test_a_refusal_is_text() -> None:
    assert TextChunk("text-0", "No.") in play(chunk({"refusal": "No."}), chunk({}, "stop"), DONE)


def test_a_tool_call_streams_its_input_and_is_finalised_at_the_finish_reason() -> None:
    events = play(
        say("Looking."),
        call(id_="c1", name="read", arguments=""),
        call(arguments='{"path":'),
        call(arguments='"a"}'),
        chunk({}, "tool_calls"),
        DONE,
    )

    assert events[2:-1] == [
        TextEnd("text-0"),
        ToolInputStart("c1", "read"),
        ToolInputChunk("c1", '{"path":'),
        ToolInputChunk("c1", '"a"}'),
        ToolInputEnd("c1"),
        ToolCall("c1", "read", {"path": "a"}),
    ]


def test_parallel_calls_are_kept_apart_by_index() -> None:
    calls = calls_of(
        call(0, "a", name="x", arguments='{"n":'),
        call(1, "b", name="y", arguments='{"n":'),
        call(0, arguments="1}"),
        call(1, arguments="2}"),
        chunk({}, "tool_calls"),
        DONE,
    )

    assert calls == [ToolCall("a", "x", {"n": 1}), ToolCall("b", "y", {"n": 2})]


def test_calls_side_by_side_with_one_id_are_two_calls() -> None:
    """D15: the whole step failed with `tool call_0 started twice`."""
    calls = calls_of(
        call(0, "call_0", name="read", arguments='{"n":'),
        call(1, "call_0", name="read", arguments='{"n":2'),
        call(0, arguments="1}"),
        call(1, arguments="}"),
        chunk({}, "tool_calls"),
        DONE,
    )

    assert [(item.id, item.input) for item in calls] == [
        ("call_0", {"n": 1}),
        ("call_0-2", {"n": 2}),
    ]


def test_a_fragment_beside_the_finish_reason_still_counts() -> None:
    last = {"tool_calls": [{"index": 0, "function": {"arguments": '{"n":1}'}}]}

    calls = calls_of(call(id_="a", name="x", arguments=""), chunk(last, "tool_calls"), DONE)

    assert calls == [ToolCall("a", "x", {"n": 1})]


def test_a_resent_id_is_the_same_call_and_a_new_id_is_a_new_one() -> None:
    calls = calls_of(
        call(0, "a", name="x", arguments="{"),
        call(0, "a", arguments="}"),
        call(0, "b", name="y", arguments="{}"),
        chunk({}, "tool_calls"),
        DONE,
    )

    assert [(tool_call.id, tool_call.input) for tool_call in calls] == [("a", {}), ("b", {})]


def test_missing_index_and_id_are_made_up_from_position_and_answer() -> None:
    both = {
        "tool_calls": [
            {"function": {"name": "x", "arguments": "{}"}},
            {"function": {"name": "y", "arguments": {"n": 1}}},
        ]
    }

    calls = calls_of(chunk(both), chunk({}, "tool_calls"), DONE)

    assert calls == [ToolCall("answer-1-0", "x", {}), ToolCall("answer-1-1", "y", {"n": 1})]


def test_a_call_without_arguments_has_an_empty_input() -> None:
    assert calls_of(call(id_="a", name="x"), chunk({}, "tool_calls"), DONE)[0].input == {}


def test_arguments_that_are_not_json_are_a_call_with_its_raw_text_and_the_reason() -> None:
    calls = calls_of(call(id_="a", name="x", arguments='{"n": 1'), chunk({}, "length"), DONE)

    assert calls[0].input == '{"n": 1'
    assert calls[0].invalid is not None


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool-calls"),
        ("function_call", "tool-calls"),
        ("content_filter", "content-filter"),
        ("error", "error"),
        ("other", "unknown"),
    ],
)
def test_finish_reasons_are_translated(reason: str, finish: str) -> None:
    assert finish_of(say("x"), chunk({}, reason), DONE).finish == finish


def test_stop_after_tool_calls_means_tool_calls() -> None:
    assert finish_of(call(id_="a", name="x"), chunk({}, "stop"), DONE).finish == "tool-calls"


def test_a_repeated_finish_reason_finishes_once() -> None:
    events = play(say("x"), chunk({}, "stop"), chunk({}, "stop"), DONE, DONE)

    assert sum(isinstance(event, StepFinish) for event in events) == 1
    assert sum(isinstance(event, TextEnd) for event in events) == 1


def test_usage_is_split_into_disjoint_counts() -> None:
    """D-34: input without cache, output without reasoning; the raw counts stay in metadata."""
    raw = {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "total_tokens": 130,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }

    end = finish_of(chunk({}, "stop"), frame({"choices": [], "usage": raw}), DONE)

    assert end.usage == ProviderUsage(30, 60, 10, 10, 20, 130)
    assert end.metadata is not None
    assert end.metadata["usage"] == raw


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, ProviderUsage(5, None, None, 2, None, 7)),
        ({"prompt_tokens": 5, "cached_tokens": 3}, ProviderUsage(2, 3, None, None, None, None)),
        (
            {"prompt_tokens": 5, "prompt_cache_hit_tokens": 1},
            ProviderUsage(4, 1, None, None, None, None),
        ),
        (
            {
                "prompt_tokens": 291,
                "completion_tokens": 26,
                "total_tokens": 513,
                "completion_tokens_details": {"reasoning_tokens": 196},
            },
            ProviderUsage(291, None, None, 26, 196, 513),
        ),
        (
            {"prompt_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}},
            ProviderUsage(0, 5, None, None, None, None),
        ),
    ],
)
def test_vendor_counters_are_understood(raw: dict[str, Any], expected: ProviderUsage) -> None:
    assert finish_of(chunk({}, "stop", usage=raw), DONE).usage == expected


def test_zero_usage_after_real_usage_is_ignored() -> None:
    real = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    zero = dict.fromkeys(real, 0)

    end = finish_of(chunk({}, "stop", usage=real), chunk({}, "stop", usage=zero), DONE)

    assert end.usage.total == 7


def test_usage_beside_the_choice_of_groq_is_read() -> None:
    raw = {"prompt_tokens": 5, "completion_tokens": 2}

    assert finish_of(chunk({}, "stop", x_groq={"usage": raw}), DONE).usage.total == 7


@pytest.mark.parametrize("parts", [[], [say("half")], [say("all"), chunk({}, "stop")]])
def test_a_body_without_the_end_marker_is_truncated(parts: list[bytes]) -> None:
    failure = failure_of(*parts)

    assert (failure.kind, failure.in_stream) == ("stream-truncated", False)


def test_calls_of_a_truncated_body_are_not_finalised() -> None:
    assert calls_of(call(id_="a", name="x", arguments="{}")) == []


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"message": "Overloaded", "type": "overloaded_error"}, "overloaded", None),
        ({"message": "slow down", "code": 429}, "rate-limit", 429),
        ({"message": "upstream", "code": "502"}, "server-error", 502),
        (
            {"message": "no", "code": "tool_use_failed", "status_code": 400},
            "invalid-request",
            400,
        ),
        ({"message": "x", "code": "context_length_exceeded"}, "context-overflow", None),
        ({"message": "hm"}, "unknown", None),
        ("plain words", "unknown", None),
    ],
)
def test_an_error_in_the_stream_is_an_in_stream_failure(
    error: object, kind: str, status: int | None
) -> None:
    failed = frame({"error": error})

    failure = failure_of(say("x"), b"event: error\n" + failed, say("ignored"), DONE)

    assert (failure.kind, failure.in_stream, failure.status) == (kind, True, status)


def test_an_error_beside_choices_wins_over_them() -> None:
    assert failure_of(
        chunk({"content": ""}, "error", error={"code": 500, "message": "x"})
    ).in_stream


@pytest.mark.parametrize("data", [b"{nope", b"[]", b"12", b'{"choices":[3]}'])
def test_a_frame_that_is_no_chunk_is_a_malformed_stream(data: bytes) -> None:
    failure = failure_of(say("x"), b"data: " + data + b"\n\n", say("ignored"), DONE)

    assert (failure.kind, failure.in_stream) == ("malformed-stream", False)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
DELTAS = st.one_of(
    TEXTS.map(say),
    TEXTS.map(lambda text: chunk({"reasoning_content": text})),
    st.tuples(st.integers(0, 2), TEXTS).map(
        lambda pair: call(pair[0], f"c{pair[0]}", name="x", arguments=pair[1])
    ),
    st.just(b": keep-alive\n\n"),
)


@given(
    deltas=st.lists(DELTAS, max_size=8),
    ends=st.booleans(),
    cuts=st.lists(st.integers(0, 3000), max_size=20),
)
def test_any_split_of_the_bytes_gives_the_same_events(
    *, deltas: list[bytes], ends: bool, cuts: list[int]
) -> None:
    body = b"".join(deltas) + (chunk({}, "stop") + DONE if ends else b"")
    edges = sorted({0, len(body), *(min(cut, len(body)) for cut in cuts)})
    parts = [body[a:b] for a, b in pairwise(edges)]

    assert play(*parts) == play(body)


@given(st.lists(DELTAS, max_size=8))
def test_blocks_are_opened_filled_and_closed_in_order(deltas: list[bytes]) -> None:
    open_blocks: set[str] = set()
    for event in play(*deltas, chunk({}, "stop"), DONE):
        match event:
            case TextStart() | ReasoningStart() | ToolInputStart():
                assert event.id not in open_blocks
                open_blocks.add(event.id)
            case TextChunk() | ReasoningChunk() | ToolInputChunk():
                assert event.id in open_blocks
            case TextEnd() | ReasoningEnd() | ToolInputEnd():
                open_blocks.remove(event.id)
            case _:
                pass
    assert not open_blocks
