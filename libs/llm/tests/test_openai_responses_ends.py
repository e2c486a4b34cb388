"""How a Responses stream ends: finished, failed, cut or malformed, in any pieces."""

from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_llm import openai_responses, sse
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    ProviderUsage,
    ReasoningEnd,
    StepFinish,
    TextChunk,
    TextEnd,
    ToolCall,
    ToolInputEnd,
    ToolResult,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "type", "text", "reason", "error"]), inner)
    ),
    max_leaves=5,
)
FIELDS = ["item", "output_index", "content_index", "summary_index", "delta", "response", "error"]
TYPES = [
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.reasoning_summary_text.delta",
    "response.function_call_arguments.delta",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
]


def frame(kind: str, **fields: object) -> bytes:
    event_line = f"event: {kind}\n".encode()
    return event_line + b"data: " + orjson.dumps({"type": kind, **fields}) + b"\n\n"


def item_added(index: int, **item: object) -> bytes:
    return frame("response.output_item.added", output_index=index, item=item)


def item_done(index: int, **item: object) -> bytes:
    return frame("response.output_item.done", output_index=index, item=item)


def delta(kind: str, index: int, text: str, **fields: object) -> bytes:
    return frame(f"response.{kind}.delta", output_index=index, delta=text, **fields)


def say(text: str, index: int = 0, part: int = 0) -> bytes:
    return delta("output_text", index, text, content_index=part)


def summary(text: str, part: int = 0) -> bytes:
    return delta("reasoning_summary_text", 0, text, summary_index=part)


def end(kind: str = "completed", **response: object) -> bytes:
    return frame(f"response.{kind}", response={"id": "resp_1", "model": "m", **response})


def play(*parts: bytes) -> list[ProviderEvent]:
    """Every event of a body that arrives in these chunks and then ends."""
    parser, state = sse.START, openai_responses.start()
    events: list[ProviderEvent] = []
    for part in parts:
        parser, frames = sse.feed(parser, part)
        for sse_frame in frames:
            state, new_events = openai_responses.step(state, sse_frame)
            events += new_events
    return [*events, *openai_responses.finish(state)]


def finish_of(*parts: bytes) -> StepFinish:
    last = play(*parts)[-1]
    assert isinstance(last, StepFinish)
    return last


def failure_of(*parts: bytes) -> ProviderFailure:
    last = play(*parts)[-1]
    assert isinstance(last, ProviderFailure)
    return last


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("max_output_tokens", "length"),
        ("content_filter", "content-filter"),
        ("steered", "unknown"),
        (None, "unknown"),
    ],
)
def test_an_incomplete_answer_says_why(reason: str | None, finish: str) -> None:
    assert finish_of(end("incomplete", incomplete_details={"reason": reason})).finish == finish


def test_usage_is_disjoint_and_the_raw_counts_are_kept() -> None:
    counts = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 12},
        "total_tokens": 120,
    }

    step_finish = finish_of(end(usage=counts))

    assert step_finish.usage == ProviderUsage(30, 60, 10, 8, 12, 120)
    assert step_finish.metadata is not None
    assert step_finish.metadata["usage"] == counts


def test_unknown_counts_stay_unknown() -> None:
    assert finish_of(end(usage={"input_tokens": 3})).usage == ProviderUsage(input=3)
    assert finish_of(end(usage={"input_tokens": 3, "output_tokens": 2})).usage.total == 5
    assert finish_of(end(usage=None)).usage == ProviderUsage()


@pytest.mark.parametrize(
    "error",
    [
        {"code": "rate_limit_exceeded", "message": "slow down"},
        {"error": {"code": "rate_limit_exceeded", "message": "slow down"}},
    ],
)
def test_an_error_event_of_either_shape_is_one_failure(error: dict[str, Any]) -> None:
    failed = frame("response.failed", response={"error": {"code": "server_error"}})

    events = play(item_added(0, type="message"), say("a"), frame("error", **error), failed)

    failures = [event for event in events if isinstance(event, ProviderFailure)]
    assert [(event.kind, event.message, event.in_stream) for event in failures] == [
        ("rate-limit", "slow down", True)
    ]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "server_error", "message": "oops"}, "server-error"),
        ({"code": "rate_limit_exceeded", "message": "oops"}, "rate-limit"),
        ({"code": "context_length_exceeded", "message": "too much"}, "context-overflow"),
        ({"code": "x", "message": "Your input exceeds the context window"}, "context-overflow"),
        (None, "unknown"),
    ],
)
def test_a_failed_answer_is_judged_by_its_error_alone(error: object, kind: str) -> None:
    quoted = {"instructions": "rate limit, overloaded", "error": error}

    assert failure_of(frame("response.failed", response=quoted)).kind == kind


def test_an_error_without_a_type_is_a_failure() -> None:
    assert failure_of(b'data: {"error":{"message":"at capacity"}}\n\n').kind == "overloaded"


def test_a_body_that_ends_early_is_truncated() -> None:
    assert failure_of(item_added(0, type="message"), say("a")).kind == "stream-truncated"


def test_what_is_open_at_the_end_is_closed() -> None:
    events = play(
        item_added(0, type="reasoning", id="rs"),
        item_added(1, type="message"),
        say("a", 1),
        item_added(2, type="function_call", call_id="c", name="x"),
        item_added(3, type="web_search_call", id="ws"),
        end(),
    )

    assert [type(event) for event in events[-8:]] == [
        ReasoningEnd,
        TextEnd,
        ToolInputEnd,
        ToolCall,
        ToolInputEnd,
        ToolCall,
        ToolResult,
        StepFinish,
    ]


@pytest.mark.parametrize("data", [b"{nope", b"[]", b"17", b"\xff"])
def test_a_frame_that_is_no_object_ends_the_stream_and_keeps_what_came(data: bytes) -> None:
    events = play(
        item_added(0, type="message"), say("a"), b"data: " + data + b"\n\n", say("b"), end()
    )

    assert [event.text for event in events if isinstance(event, TextChunk)] == ["a"]
    assert getattr(events[-1], "kind", None) == "malformed-stream"


def test_unknown_events_and_comments_are_passed_over() -> None:
    events = play(b": hi\n\n", frame("response.queued"), frame("keepalive"), end())

    assert len(events) == 1


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.dictionaries(st.sampled_from(FIELDS), JSON))))
def test_no_frame_can_crash_the_reader(frames: list[tuple[str, dict[str, Any]]]) -> None:
    events = play(*(frame(kind, **fields) for kind, fields in frames))

    ends = [event for event in events if isinstance(event, StepFinish | ProviderFailure)]
    assert ends == events[-1:]


ANSWER = b"".join(
    (
        frame("response.created", response={"id": "resp_1"}),
        item_added(0, type="reasoning", id="rs_1"),
        summary("dénk"),
        item_done(0, type="reasoning", id="rs_1", encrypted_content="x"),
        item_added(1, type="message"),
        say("né ", 1),
        say("漢字", 1),
        item_done(1, type="message"),
        item_added(2, type="function_call", call_id="c", name="x"),
        delta("function_call_arguments", 2, '{"a":'),
        delta("function_call_arguments", 2, "1}"),
        item_done(2, type="function_call", call_id="c", name="x", arguments='{"a":1}'),
        end(usage={"input_tokens": 1, "output_tokens": 1}),
    )
)


@given(st.lists(st.integers(0, len(ANSWER)), max_size=20), st.sampled_from([b"\n", b"\r\n"]))
def test_any_split_of_the_bytes_gives_the_same_events(cuts: list[int], ending: bytes) -> None:
    body = ANSWER.replace(b"\n", ending)
    edges = [0, *sorted(cuts), len(body)]

    assert play(*(body[a:b] for a, b in pairwise(edges))) == play(ANSWER)
