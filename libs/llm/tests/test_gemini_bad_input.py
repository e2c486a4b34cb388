"""A Gemini stream that breaks its grammar: a classified failure, and the events before it stay."""

from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_llm import failure, gemini, sse
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    StepFinish,
    TextChunk,
    TextStart,
    ToolCall,
)


def frame(value: object) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\r\n\r\n"


def chunk(*parts: object, **candidate: object) -> bytes:
    content = {"content": {"role": "model", "parts": list(parts)}}
    return frame({"candidates": [content | candidate], "responseId": "r1"})


SAY = chunk({"text": "hi"})
WHOLE = b"".join(
    [
        chunk({"text": "Hm …", "thought": True}),
        chunk({"text": "22 °C\u2028", "thoughtSignature": "s"}),
        chunk({"functionCall": {"name": "look", "args": {"city": "Zürich"}}}),
        chunk({"text": "", "thoughtSignature": "t"}, finishReason="STOP"),
    ]
)


def play(*parts: bytes) -> list[ProviderEvent]:
    parser, state = sse.START, gemini.start()
    events: list[ProviderEvent] = []
    for part in parts:
        parser, frames = sse.feed(parser, part)
        for sse_frame in frames:
            state, new_events = gemini.step(state, sse_frame)
            events += new_events
    return [*events, *gemini.finish(state)]


def failure_of(*parts: bytes) -> ProviderFailure:
    last = play(*parts)[-1]
    assert isinstance(last, ProviderFailure)
    return last


@pytest.mark.parametrize("cut", [b"", SAY, frame({"usageMetadata": {}})])
def test_a_body_that_ends_before_its_finish_reason_is_truncated(cut: bytes) -> None:
    assert (failure_of(cut).kind, failure_of(cut).retryable) == ("stream-truncated", True)


@pytest.mark.parametrize(
    "bad",
    [
        b'data: {"candidates": [\r\n\r\n',
        b"data: <html>Bad gateway</html>\r\n\r\n",
        b"data: [1, 2]\r\n\r\n",
        frame({"candidates": [7]}),
        frame({"candidates": {"content": 1}}),
        frame({"promptFeedback": "no"}),
        chunk("text"),
        chunk({"functionCall": 7}),
        chunk({"functionCall": {"name": "a", "partialArgs": [{"jsonPath": "$.a[99999999]"}]}}),
        chunk({"functionCall": {"name": "a", "partialArgs": [{"jsonPath": "$"}]}}),
        chunk({"executableCode": None}),
    ],
)
def test_a_bad_frame_fails_the_stream_and_keeps_what_was_said(bad: bytes) -> None:
    events = play(SAY, bad, SAY, chunk(finishReason="STOP"))

    assert events[:2] == [TextStart("text-0"), TextChunk("text-0", "hi")]
    assert len(events) == 3
    assert getattr(events[2], "kind", None) == "malformed-stream"


def test_the_parts_before_one_that_cannot_be_read_are_kept() -> None:
    events = play(chunk({"text": "a"}, "b"))

    assert events[:2] == [TextStart("text-0"), TextChunk("text-0", "a")]


@pytest.mark.parametrize("args", [[1], "x", 7, False])
def test_arguments_that_are_no_object_are_a_call_that_says_why(args: object) -> None:
    events = play(chunk({"functionCall": {"name": "a", "args": args}}, finishReason="STOP"))

    call = next(event for event in events if isinstance(event, ToolCall))
    assert call.invalid is not None
    assert isinstance(events[-1], StepFinish)


def test_a_call_whose_pieces_never_end_says_so() -> None:
    first_piece = chunk({"functionCall": {"name": "a", "willContinue": True}})

    events = play(first_piece, chunk(finishReason="MAX_TOKENS"))

    assert next(event.invalid for event in events if isinstance(event, ToolCall))


def test_a_blocked_prompt_is_filtered_content() -> None:
    feedback = {"blockReason": "SAFETY"}

    end = play(frame({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 4}}))[-1]

    assert isinstance(end, StepFinish)
    assert (end.finish, end.usage.input) == ("content-filter", 4)
    assert (end.metadata or {})["promptFeedback"] == feedback


@pytest.mark.parametrize(
    ("code", "status", "kind", "retryable"),
    [
        (400, "INVALID_ARGUMENT", "invalid-request", False),
        (403, "PERMISSION_DENIED", "auth", False),
        (404, "NOT_FOUND", "invalid-request", False),
        (429, "RESOURCE_EXHAUSTED", "rate-limit", True),
        (500, "INTERNAL", "server-error", True),
        (503, "UNAVAILABLE", "overloaded", True),
        (504, "DEADLINE_EXCEEDED", "timeout", True),
    ],
)
@pytest.mark.parametrize("listed", [True, False], ids=["in a list", "alone"])
def test_an_error_is_classified_in_the_stream_as_in_an_answer(
    code: int, status: str, kind: str, *, retryable: bool, listed: bool
) -> None:
    error = {"error": {"code": code, "message": "No.", "status": status}}
    body = [error] if listed else error

    inside = failure_of(SAY + frame(body))
    outside = failure.http_failure(code, {}, orjson.dumps(body).decode())

    assert (inside.kind, inside.retryable, inside.in_stream) == (kind, retryable, True)
    assert (outside.kind, outside.retryable, outside.message) == (kind, retryable, "No.")


def test_the_wait_that_the_details_ask_for_is_told() -> None:
    details = [{"@type": "x"}, {"@type": "RetryInfo", "retryDelay": "37s"}]
    error = {"error": {"code": 429, "message": "Quota", "details": details}}

    assert failure_of(frame(error)).retry_after_s == 37.0
    assert failure.http_failure(429, {}, orjson.dumps(error).decode()).retry_after_s == 37.0
    refusal = failure.http_failure(429, {"retry-after": "3"}, orjson.dumps(error).decode())
    assert refusal.retry_after_s == 3.0


def test_a_prompt_that_does_not_fit_is_an_overflow_and_a_bad_key_no_access() -> None:
    """G-37: only the texts and codes of an error decide."""
    long = "The input token count (9) exceeds the maximum number of tokens allowed (8)."
    key = "API key not valid. Please pass a valid API key."

    def kind(message: str) -> str:
        error = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
        return failure.http_failure(400, {}, orjson.dumps(error).decode()).kind

    assert (kind(long), kind(key)) == ("context-overflow", "auth")


def test_a_frame_of_ten_megabytes_is_read() -> None:
    body = chunk({"text": "x" * 10_000_000}, finishReason="STOP")
    reads = [body[at : at + 1_000_000] for at in range(0, len(body), 1_000_000)]

    events = play(*reads)

    assert isinstance(events[1], TextChunk)
    assert len(events[1].text) == 10_000_000
    assert isinstance(events[-1], StepFinish)


def test_a_byte_order_mark_and_other_line_ends_change_nothing() -> None:
    assert play(b"\xef\xbb\xbf" + WHOLE.replace(b"\r\n", b"\n")) == play(WHOLE)


@given(cuts=st.lists(st.integers(0, len(WHOLE)), max_size=30))
def test_any_split_of_the_bytes_gives_the_same_events(cuts: list[int]) -> None:
    edges = sorted({0, len(WHOLE), *cuts})

    assert play(*(WHOLE[a:b] for a, b in pairwise(edges))) == play(WHOLE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "$.a[0]"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["id", "name", "args", "jsonPath", "partialArgs", "willContinue"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)
NAMES = ["text", "thought", "thoughtSignature", "functionCall", "executableCode", "toolResponse"]
PARTS = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.lists(PARTS | JSON, max_size=3), st.none() | JSON), max_size=4))
def test_whatever_a_provider_sends_the_stream_has_one_end(
    chunks: list[tuple[list[Any], Any]],
) -> None:
    events = play(*(chunk(*parts, finishReason=reason) for parts, reason in chunks))

    ends = [event for event in events if isinstance(event, StepFinish | ProviderFailure)]
    assert ends == events[-1:]
