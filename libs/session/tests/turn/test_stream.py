"""The stream of a turn: durable starts and ends, and live deltas in between."""

import pytest
from libs.session.tests.conftest import MODEL

from fairlead_schema.catalog import Tokens
from fairlead_schema.delta import ReasoningDelta, TextDelta, ToolInputDelta
from fairlead_schema.events import (
    ReasoningEnded,
    ReasoningStarted,
    SessionEvent,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolInputEnded,
    ToolInputStarted,
)
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
    ToolInputChunk,
    ToolInputStart,
)
from fairlead_schema.tools.content import ErrorInfo
from fairlead_session.execution.recovery import INTERRUPTED_TURN
from fairlead_session.turn.stream import TurnStream
from fairlead_session.turn.stream_blocks import BLOCK_LENGTH_MAX
from fairlead_session.turn.stream_calls import ProtocolViolation
from fairlead_session.turn.usage import TokenPrice

STOP = StepFinish("stop", ProviderUsage(input=3, output=2))
FAILED = ProviderFailure("server-error", "it broke")
STARTED = StepStarted(assistant_message_id="msg_a", agent="build", model=MODEL)


def turn_stream() -> TurnStream:
    return TurnStream("msg_a", "build", MODEL)


def received(stream: TurnStream, *events: ProviderEvent) -> tuple[SessionEvent, ...]:
    return tuple(durable for event in events for durable in stream.receive(event)[0])


def published(*events: ProviderEvent) -> tuple[SessionEvent, ...]:
    stream = turn_stream()
    return (*received(stream, *events), *stream.complete())


def text_started(id_: str) -> TextStarted:
    return TextStarted(assistant_message_id="msg_a", text_id=id_)


def text_ended(id_: str, text: str) -> TextEnded:
    return TextEnded(assistant_message_id="msg_a", text_id=id_, text=text)


def step_failed(message: str, *, raised: bool | None = None, code: str | None = None) -> StepFailed:
    error = ErrorInfo(message=message, code=code)
    return StepFailed(assistant_message_id="msg_a", error=error, raised=raised)


def test_a_plain_text_turn_has_its_exact_durable_order() -> None:
    """D-01, D-06: step started, text started, text ended with the whole value, step ended."""
    events = published(
        TextStart("t"), TextChunk("t", "he"), TextChunk("t", "y"), TextEnd("t"), STOP
    )

    assert events == (
        STARTED,
        text_started("t"),
        text_ended("t", "hey"),
        StepEnded(
            assistant_message_id="msg_a", finish="stop", cost=0, tokens=Tokens(input=3, output=2)
        ),
    )


def test_the_deltas_of_a_block_are_numbered_and_its_text_so_far_says_how_many() -> None:
    """A reader that comes late joins the text so far and the deltas after it."""
    stream = turn_stream()
    received(stream, TextStart("t"), TextStart("silent"), ReasoningStart("r"))
    received(stream, TextChunk("t", "a"), ReasoningChunk("r", "b"))

    _, third = stream.receive(TextChunk("t", "c"))
    texts = stream.so_far()
    received(stream, TextEnd("t"))

    assert isinstance(third, TextDelta)
    assert third.index == 1
    assert [(text.so_far.delta, text.so_far.index, text.deltas) for text in texts] == [
        ("ac", 0, 2),
        ("b", 0, 1),
    ]
    assert [text.so_far.type for text in stream.so_far()] == ["reasoning.delta"]


def test_chunks_are_live_and_never_durable() -> None:
    """D-07: each fragment is a delta that names its block and its message."""
    stream = turn_stream()
    received(stream, TextStart("t"), ReasoningStart("r"), ToolInputStart("c", "read"))

    outputs = [
        stream.receive(event)
        for event in (TextChunk("t", "a"), ReasoningChunk("r", "b"), ToolInputChunk("c", "{"))
    ]

    assert outputs == [
        ((), TextDelta(assistant_message_id="msg_a", text_id="t", delta="a", index=0)),
        ((), ReasoningDelta(assistant_message_id="msg_a", reasoning_id="r", delta="b", index=0)),
        ((), ToolInputDelta(assistant_message_id="msg_a", call_id="c", delta="{", index=0)),
    ]


def test_the_step_starts_with_its_first_output() -> None:
    """D-03: nothing is durable before there is something to say, and the start comes once."""
    stream = turn_stream()

    assert not stream.started
    assert received(stream, TextStart("t"), TextStart("u")) == (
        STARTED,
        text_started("t"),
        text_started("u"),
    )


def test_an_empty_stream_creates_no_assistant() -> None:
    """D-04: no content and no finish leave nothing behind."""
    assert published() == ()


def test_a_finish_alone_creates_an_empty_assistant() -> None:
    """D-05: the step starts and ends."""
    assert [type(event) for event in published(STOP)] == [StepStarted, StepEnded]


def test_interleaved_blocks_stay_separate() -> None:
    """D-09: blocks are known by their ids and keep their start order."""
    events = published(
        TextStart("a"),
        TextStart("b"),
        TextChunk("b", "2"),
        TextChunk("a", "1"),
        TextEnd("b"),
        TextEnd("a"),
        STOP,
    )

    assert events[1:5] == (
        text_started("a"),
        text_started("b"),
        text_ended("b", "2"),
        text_ended("a", "1"),
    )


def test_a_raised_failure_closes_partial_text_before_the_step_fails() -> None:
    """D-10: what was said is kept with its partial value."""
    events = published(TextStart("t"), TextChunk("t", "par"), FAILED)

    assert events[2:] == (
        text_ended("t", "par"),
        step_failed("it broke", raised=True, code="server-error"),
    )


def test_an_interrupted_turn_keeps_what_was_said() -> None:
    """D-11: partial text and reasoning close, and the step fails as interrupted."""
    stream = turn_stream()
    received(stream, TextStart("t"), TextChunk("t", "par"), ReasoningStart("r"))

    assert stream.interrupt() == (
        text_ended("t", "par"),
        ReasoningEnded(assistant_message_id="msg_a", reasoning_id="r", text=""),
        step_failed(INTERRUPTED_TURN),
    )
    assert stream.complete() == ()


def test_interrupting_a_turn_that_said_nothing_leaves_nothing() -> None:
    """D-11, D-04: there is no assistant to fail."""
    assert turn_stream().interrupt() == ()


def test_open_blocks_close_as_texts_then_reasoning_then_inputs() -> None:
    """D-12: the flush order at the end of the stream, each kind in its start order."""
    events = published(
        ToolInputStart("c", "read"),
        ReasoningStart("r"),
        TextStart("t1"),
        TextStart("t2"),
        STOP,
    )

    assert [type(event) for event in events] == [
        StepStarted,
        ToolInputStarted,
        ReasoningStarted,
        TextStarted,
        TextStarted,
        TextEnded,
        TextEnded,
        ReasoningEnded,
        ToolInputEnded,
        StepEnded,
    ]
    assert [event.text_id for event in events if isinstance(event, TextEnded)] == ["t1", "t2"]


def test_reasoning_keeps_both_sides_of_its_metadata_unless_it_was_flushed() -> None:
    """D-13: an end that never came has no metadata of its own."""
    metadata = {"signature": "s"}
    whole = published(ReasoningStart("r", {"a": 1}), ReasoningEnd("r", metadata), STOP)
    flushed = published(ReasoningStart("r", {"a": 1}), ReasoningChunk("r", "hm"), FAILED)

    started, ended = whole[1:3]
    assert isinstance(started, ReasoningStarted)
    assert isinstance(ended, ReasoningEnded)
    assert (started.provider_metadata, ended.provider_metadata) == ({"a": 1}, metadata)
    assert flushed[2] == ReasoningEnded(
        assistant_message_id="msg_a", reasoning_id="r", text="hm", provider_metadata=None
    )


def test_text_keeps_the_metadata_of_its_end() -> None:
    """O-08: what a provider wants back with a text is durable with it."""
    events = published(TextStart("t"), TextChunk("t", "hi"), TextEnd("t", {"phase": "final"}), STOP)

    assert events[2] == TextEnded(
        assistant_message_id="msg_a", text_id="t", text="hi", provider_metadata={"phase": "final"}
    )


def test_a_provider_error_before_any_content_still_creates_the_assistant() -> None:
    """D-25, D-26: the failure has a message to stand on."""
    for in_stream in (True, False):
        failure = ProviderFailure("overloaded", "busy", in_stream=in_stream)

        assert published(failure) == (
            STARTED,
            step_failed("busy", raised=not in_stream or None, code="overloaded"),
        )


def test_nothing_counts_after_a_provider_error() -> None:
    """D-28: what still arrives is drained and ignored."""
    events = published(ProviderFailure("unknown", "no", in_stream=True), TextStart("t"), STOP)

    assert events == (STARTED, step_failed("no", code="unknown"))


def test_a_stream_that_ends_without_a_finish_fails_its_step() -> None:
    """D-10: output without an end is no answer."""
    events = published(TextStart("t"), TextChunk("t", "par"))

    assert events[2] == text_ended("t", "par")
    assert isinstance(events[3], StepFailed)


def test_a_step_costs_what_its_tokens_cost() -> None:
    """D-35: beyond the gap, the cost is computed from the model's price."""
    stream = TurnStream("msg_a", "build", MODEL, TokenPrice(input=2.0, output=10.0))
    stream.receive(StepFinish("stop", ProviderUsage(input=1000, output=100, reasoning=100)))

    ended = stream.complete()[-1]

    assert isinstance(ended, StepEnded)
    assert ended.cost == pytest.approx(0.004)


@pytest.mark.parametrize(
    "events",
    [
        (TextStart("t"), TextStart("t")),
        (ReasoningStart("t"), ReasoningStart("t")),
        (TextChunk("t", "x"),),
        (TextEnd("t"),),
        (TextStart("t"), TextEnd("t"), TextChunk("t", "x")),
        (ReasoningStart("t"), TextChunk("t", "x")),
        (ReasoningEnd("r"),),
        (STOP, STOP),
    ],
)
def test_a_stream_that_breaks_its_grammar_is_a_violation(events: tuple[ProviderEvent, ...]) -> None:
    """D-18: duplicate starts, parts before their start and a second finish are defects."""
    with pytest.raises(ProtocolViolation):
        received(turn_stream(), *events)


def test_a_violation_can_still_be_published_as_a_failure() -> None:
    """D-18, D-10: what was said before the defect is closed and the step fails."""
    stream = turn_stream()
    received(stream, TextStart("t"), TextChunk("t", "par"))
    with pytest.raises(ProtocolViolation):
        stream.receive(TextStart("t"))

    assert received(stream, FAILED) == (
        text_ended("t", "par"),
        step_failed("it broke", raised=True, code="server-error"),
    )


def test_a_block_without_end_is_cut_off_where_the_log_could_not_hold_it() -> None:
    """D-18, D-10: a provider that never stops costs neither all memory nor what it said so far."""
    stream, piece = turn_stream(), "x" * (BLOCK_LENGTH_MAX // 4)
    received(stream, TextStart("t"), ReasoningStart("r"))

    for _ in range(4):
        stream.receive(TextChunk("t", piece))
        stream.receive(ReasoningChunk("r", "hm"))
    with pytest.raises(ProtocolViolation, match="text t is longer than"):
        stream.receive(TextChunk("t", "x"))

    ended = received(stream, FAILED)[0]
    assert isinstance(ended, TextEnded)
    assert ended.text == piece * 4
