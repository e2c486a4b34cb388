"""A Messages stream that breaks its grammar: a classified failure, and the events before it stay."""

from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_llm import anthropic_messages, sse
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    StepFinish,
    TextChunk,
    TextEnd,
    TextStart,
    ToolCall,
)


def frame(**event: object) -> bytes:
    return b"data: " + orjson.dumps(event) + b"\n\n"


def message_start(id_: str = "msg_1") -> bytes:
    return frame(type="message_start", message={"id": id_, "content": [], "usage": {}})


def block_start(index: int = 0, **block: object) -> bytes:
    start = block or {"type": "text", "text": ""}
    return frame(type="content_block_start", index=index, content_block=start)


def block_delta(index: int = 0, **delta: object) -> bytes:
    return frame(type="content_block_delta", index=index, delta=delta)


def text_delta(text: str, index: int = 0) -> bytes:
    return block_delta(index, type="text_delta", text=text)


def block_stop(index: int = 0) -> bytes:
    return frame(type="content_block_stop", index=index)


CLOSING = frame(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 1})
STOP = frame(type="message_stop")
TOOL = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
WHOLE = b"".join(
    [
        message_start(),
        block_start(0, type="thinking", thinking=""),
        block_delta(0, type="thinking_delta", thinking="Hm …"),
        block_delta(0, type="signature_delta", signature="s"),
        block_stop(0),
        block_start(1),
        text_delta("22 °C\u2028", 1),
        block_stop(1),
        block_start(2, **TOOL),
        block_delta(2, type="input_json_delta", partial_json='{"city":"Zürich"}'),
        block_stop(2),
        CLOSING,
        STOP,
    ]
)


def play(*parts: bytes) -> list[ProviderEvent]:
    parser, state = sse.START, anthropic_messages.start()
    events: list[ProviderEvent] = []
    for part in parts:
        parser, frames = sse.feed(parser, part)
        for sse_frame in frames:
            state, new_events = anthropic_messages.step(state, sse_frame)
            events += new_events
    return [*events, *anthropic_messages.finish(state)]


def failure_of(*parts: bytes) -> ProviderFailure:
    last = play(*parts)[-1]
    assert isinstance(last, ProviderFailure)
    return last


@pytest.mark.parametrize(
    "cut",
    [message_start(), message_start() + block_start() + text_delta("hi"), WHOLE[: -len(STOP)]],
)
def test_a_body_that_ends_before_message_stop_is_truncated(cut: bytes) -> None:
    failure = failure_of(cut)

    assert (failure.kind, failure.retryable) == ("stream-truncated", True)


@pytest.mark.parametrize(
    "bad",
    [
        b'data: {"type": "content_bl\n\n',
        b"data: <html>Bad gateway</html>\n\n",
        b"data: [1]\n\n",
        b"data: \xff\xfe\n\n",
        frame(type="content_block_delta", index=7, delta={"type": "text_delta", "text": "x"}),
        frame(type="content_block_delta", index=0, delta={"type": "text_delta", "text": 7}),
        frame(type="content_block_delta", index=0),
        frame(type="content_block_start", index=1, content_block="text"),
        frame(type="message_start", message=None),
        frame(type="message_delta", delta=[1]),
    ],
)
def test_a_bad_frame_fails_the_stream_and_keeps_what_was_said(bad: bytes) -> None:
    events = play(
        message_start() + block_start() + text_delta("hi"), bad, text_delta("never"), STOP
    )

    assert events[:2] == [TextStart("text-0"), TextChunk("text-0", "hi")]
    assert len(events) == 3
    assert getattr(events[2], "kind", None) == "malformed-stream"


@pytest.mark.parametrize(
    ("kind", "expected", "retryable"),
    [
        ("overloaded_error", "overloaded", True),
        ("rate_limit_error", "rate-limit", True),
        ("api_error", "server-error", True),
        ("timeout_error", "timeout", True),
        ("authentication_error", "auth", False),
        ("permission_error", "auth", False),
        ("invalid_request_error", "invalid-request", False),
        ("not_found_error", "invalid-request", False),
        ("request_too_large", "context-overflow", False),
    ],
)
def test_an_error_in_the_stream_is_classified_by_its_type(
    kind: str, expected: str, *, retryable: bool
) -> None:
    """The error type decides, because the wording of a message may change."""
    error = frame(type="error", error={"type": kind, "message": "Overloaded, says the authority"})

    failure = failure_of(message_start() + error + STOP)

    assert (failure.kind, failure.retryable, failure.in_stream) == (expected, retryable, True)


def test_an_overflow_in_the_stream_is_one() -> None:
    """G-37: only the texts and codes of an error decide."""
    error = {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}

    assert failure_of(frame(type="error", error=error)).kind == "context-overflow"


@pytest.mark.parametrize("json", ["[1]", '"x"', "null", "7", '{"n": 1', "not json"])
def test_arguments_that_are_no_object_are_a_call_that_says_why(json: str) -> None:
    fragment = block_delta(0, type="input_json_delta", partial_json=json)

    events = play(
        message_start() + block_start(0, **TOOL) + fragment + block_stop() + CLOSING + STOP
    )

    call = next(event for event in events if isinstance(event, ToolCall))
    assert call.invalid is not None
    assert isinstance(events[-1], StepFinish)


def test_a_frame_of_ten_megabytes_is_read() -> None:
    body = (
        message_start()
        + block_start()
        + text_delta("x" * 10_000_000)
        + block_stop()
        + CLOSING
        + STOP
    )
    reads = [body[at : at + 1_000_000] for at in range(0, len(body), 1_000_000)]

    events = play(*reads)

    assert isinstance(events[1], TextChunk)
    assert len(events[1].text) == 10_000_000
    assert isinstance(events[-1], StepFinish)


def test_a_byte_order_mark_and_other_line_ends_change_nothing() -> None:
    assert play(b"\xef\xbb\xbf" + WHOLE.replace(b"\n", b"\r\n")) == play(WHOLE)


def test_a_repeated_message_start_changes_nothing() -> None:
    assert play(message_start() + WHOLE) == play(WHOLE)
    assert play(
        message_start()
        + block_start()
        + message_start()
        + text_delta("a")
        + block_stop()
        + CLOSING
        + STOP
    )[1:3] == [
        TextChunk("text-0", "a"),
        TextEnd("text-0"),
    ]


def test_an_answer_restarted_in_the_middle_closes_what_was_open() -> None:
    half = message_start() + block_start() + text_delta("Hal") + block_start(1, **TOOL)

    events = play(
        half
        + message_start("msg_2")
        + block_start()
        + text_delta("Hello")
        + block_stop()
        + CLOSING
        + STOP
    )

    call = next(event for event in events if isinstance(event, ToolCall))
    assert call.invalid is not None
    assert events[-4:-1] == [TextStart("text-2"), TextChunk("text-2", "Hello"), TextEnd("text-2")]
    assert (getattr(events[-1], "metadata", None) or {})["id"] == "msg_2"


def test_a_block_that_begins_over_an_open_one_closes_it() -> None:
    events = play(
        message_start()
        + block_start()
        + text_delta("a")
        + block_start()
        + text_delta("b")
        + block_stop()
        + CLOSING
        + STOP
    )

    assert events[2:4] == [TextEnd("text-0"), TextStart("text-1")]


def test_a_message_that_stops_with_open_blocks_closes_them() -> None:
    events = play(message_start() + block_start() + text_delta("a") + CLOSING + STOP)

    assert [type(event) for event in events[-2:]] == [TextEnd, StepFinish]


@given(cuts=st.lists(st.integers(0, len(WHOLE)), max_size=30))
def test_any_split_of_the_bytes_gives_the_same_events(cuts: list[int]) -> None:
    edges = sorted({0, len(WHOLE), *cuts})

    assert play(*(WHOLE[a:b] for a, b in pairwise(edges))) == play(WHOLE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "text", "tool_use"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["type", "id", "name", "text", "input", "tool_use_id", "usage", "content"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)
KINDS = ["content_block_start", "content_block_delta", "content_block_stop", "message_start"]
EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from([*KINDS, "message_delta", "message_stop", "error", "ping"])},
    optional={
        "index": st.integers(0, 1) | JSON,
        "content_block": JSON,
        "delta": JSON,
        "message": JSON,
        "usage": JSON,
        "error": JSON,
    },
)


@settings(max_examples=300)
@given(events=st.lists(EVENTS, max_size=8))
def test_whatever_a_provider_sends_the_stream_has_one_end(events: list[dict[str, Any]]) -> None:
    parsed = play(message_start(), *(frame(**event) for event in events))

    ends = [event for event in parsed if isinstance(event, StepFinish | ProviderFailure)]
    assert ends == parsed[-1:]
