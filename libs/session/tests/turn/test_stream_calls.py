"""Tool calls of a stream: each is called once, and a hosted call is settled once."""

from typing import Any

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    admitted,
    assistant_of,
    claimed,
    dispatched,
    given,
    promoted,
    recorded,
)

from fairlead_schema.events import (
    AttemptFinished,
    SessionEvent,
    StepEnded,
    StepFailed,
    StepStarted,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.message import ToolBlock
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    ProviderUsage,
    StepFinish,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)
from fairlead_schema.tools.content import Executor, PendingCall, TextContent, ToolContent
from fairlead_session.execution.recovery import INTERRUPTED_TOOL, fail_abandoned_calls
from fairlead_session.next_move import Rest, next_move
from fairlead_session.turn.stream import NO_RESULT, TurnStream
from fairlead_session.turn.stream_calls import Offer, ProtocolViolation
from fairlead_session.verify.verify import verify

STOP = StepFinish("stop", ProviderUsage())
HOSTED = ToolCall("c", "search", {"q": 1}, executed=True, metadata={"call": 1})


def published(*events: ProviderEvent) -> tuple[SessionEvent, ...]:
    turn_stream = TurnStream("msg_a", "build", MODEL)
    events_ = tuple(item for event in events for item in turn_stream.receive(event)[0])
    return (*events_, *turn_stream.complete())


def of(events: tuple[SessionEvent, ...], kind: type[SessionEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_a_call_without_streamed_input_gets_an_input_of_its_own() -> None:
    """D-16: input started and ended, empty, before the call."""
    events = published(ToolCall("c", "read", {"path": "a"}), STOP)

    assert events[1:3] == (
        ToolInputStarted(assistant_message_id="msg_a", call_id="c", name="read"),
        ToolInputEnded(assistant_message_id="msg_a", call_id="c", text=""),
    )
    assert of(events, ToolCalled)[0].input == {"path": "a"}


def test_streamed_input_is_stored_whole_before_its_call() -> None:
    """D-07, D-17: the raw text ends the input, the parsed value makes the call."""
    input_events = (
        ToolInputStart("c", "read"),
        ToolInputChunk("c", '{"a":'),
        ToolInputChunk("c", "1}"),
    )
    ended = published(*input_events, ToolInputEnd("c"), ToolCall("c", "read", {"a": 1}), STOP)
    unended = published(*input_events, ToolCall("c", "read", {"a": 1}), STOP)

    assert ended == unended
    assert of(ended, ToolInputEnded) == [
        ToolInputEnded(assistant_message_id="msg_a", call_id="c", text='{"a":1}')
    ]
    assert len(of(ended, ToolInputStarted)) == 1


@pytest.mark.parametrize("value", ["raw", 7, [1], None])
def test_an_input_that_is_no_object_is_wrapped(value: object) -> None:
    """D-17: the call's input is always an object."""
    assert of(published(ToolCall("c", "x", value), STOP), ToolCalled)[0].input == {"value": value}


def test_an_input_never_followed_by_a_call_stays_uncalled() -> None:
    """D-15, E-04: at the normal end it is closed, nothing settles it, and nothing continues."""
    events = published(ToolInputStart("c", "read"), ToolInputChunk("c", "{"), STOP)

    assert of(events, ToolInputEnded)[0].text == "{"
    assert of(events, ToolCalled) == of(events, ToolFailed) == []
    turn = (admitted("msg_1"), claimed(), promoted("msg_1"), dispatched())
    session = given(CREATED, INITIALISED, *turn, *events)
    assert (session.execution.owed, next_move(session)) == (False, Rest("idle"))


def test_hosted_calls_are_recorded_but_neither_run_here_nor_a_reason_to_continue() -> None:
    """D-21: the provider executed it, so the turn is over."""
    turn_stream = TurnStream("msg_a", "build", MODEL)
    events = (
        *turn_stream.receive(HOSTED)[0],
        *turn_stream.receive(ToolResult("c", "found"))[0],
        *turn_stream.receive(STOP)[0],
        *turn_stream.complete(),
    )

    assert turn_stream.local_calls == ()
    assert of(events, ToolCalled)[0].provider == Executor(executed=True, metadata={"call": 1})
    turn = (admitted("msg_1"), claimed(), promoted("msg_1"), dispatched())
    session = given(CREATED, INITIALISED, *turn, *events)
    assert (session.execution.owed, next_move(session)) == (False, Rest("idle"))


def test_local_calls_are_for_us_to_run() -> None:
    """D-21: only calls that the provider does not execute are ours."""
    turn_stream = TurnStream("msg_a", "build", MODEL)
    turn_stream.receive(ToolCall("l", "read", {}))
    turn_stream.receive(HOSTED)

    assert turn_stream.local_calls == ("l",)


@pytest.mark.parametrize(
    ("offer", "run", "reason"),
    [
        (Offer(calls_max=2), ("c1", "c2"), "A turn may make 2 tool calls; this one was not run"),
        (Offer(final=True), (), "Tools are disabled after the maximum agent steps"),
    ],
)
def test_calls_beyond_what_was_offered_are_settled_at_once(
    offer: Offer, run: tuple[str, ...], reason: str
) -> None:
    """E-24, E-30: each fails beside its call and waits for nobody; hosted ones are not ours."""
    turn_stream = TurnStream("msg_a", "build", MODEL, offer=offer)
    calls = (ToolCall("c1", "read", {}), HOSTED, ToolCall("c2", "read", {}))
    stream = (*calls, ToolResult("c", "x"), ToolCall("c3", "read", {}), STOP)
    events = tuple(item for event in stream for item in turn_stream.receive(event)[0])

    failed = of(events, ToolFailed)
    assert [event.call_id for event in failed] == [
        id_ for id_ in ("c1", "c2", "c3") if id_ not in run
    ]
    assert {event.error.message for event in failed} == {reason}
    assert turn_stream.local_calls == run
    assert [of(events[events.index(event) - 1 :], ToolCalled)[0].call_id for event in failed] == [
        event.call_id for event in failed
    ]
    assert isinstance(turn_stream.complete()[-1], AttemptFinished if run else StepEnded)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (STOP, NO_RESULT),
        (ProviderFailure("network", "cut"), NO_RESULT),
        (ProviderFailure("unknown", "no", in_stream=True), INTERRUPTED_TOOL),
    ],
    ids=["normal end", "raised", "in stream"],
)
def test_a_hosted_call_without_a_result_fails_before_the_step_closes(
    end: ProviderEvent, message: str
) -> None:
    """D-22, D-23, D-24: the reason says how the stream ended."""
    events = published(HOSTED, end)

    *_, failed, last = events
    assert isinstance(failed, ToolFailed)
    assert (failed.error.message, failed.provider.executed) == (message, True)
    assert isinstance(last, StepEnded | StepFailed)


def test_local_calls_are_not_failed_by_the_end_of_the_stream() -> None:
    """D-22: their settlement is ours and comes later."""
    assert of(published(ToolCall("l", "read", {}), STOP), ToolFailed) == []


@pytest.mark.parametrize(
    ("value", "structured", "content"),
    [
        ({"n": 1}, {"n": 1}, ()),
        ([1, 2], {"value": [1, 2]}, ()),
        (7, {"value": 7}, ()),
        ("found it", {}, (TextContent(text="found it"),)),
    ],
)
def test_a_hosted_result_keeps_its_raw_value_beside_what_is_shown(
    value: object, structured: dict[str, Any], content: tuple[ToolContent, ...]
) -> None:
    """D-29, D-32: objects are structured, other values wrapped, text is one text item."""
    (succeeded,) = of(published(HOSTED, ToolResult("c", value), STOP), ToolSucceeded)

    assert (succeeded.structured, succeeded.content) == (structured, content)
    assert succeeded.result == value


@pytest.mark.parametrize(
    ("value", "message"),
    [("denied", "denied"), ({"message": "quota"}, "quota"), ({"code": 3}, None), (None, None)],
)
def test_an_error_result_fails_the_call_and_keeps_the_raw_value(
    value: object, message: str | None
) -> None:
    """D-30: never a success, and always a message."""
    events = published(HOSTED, ToolResult("c", value, error=True), STOP)

    (failed,) = of(events, ToolFailed)
    assert of(events, ToolSucceeded) == []
    assert failed.result == value
    assert failed.error.message == (message or "The provider's tool failed")


def test_call_and_result_metadata_are_kept_apart() -> None:
    """D-31: each event carries its own."""
    events = published(HOSTED, ToolResult("c", "x", metadata={"result": 2}), STOP)

    assert of(events, ToolCalled)[0].provider.metadata == {"call": 1}
    assert of(events, ToolSucceeded)[0].provider.metadata == {"result": 2}


def test_an_error_repeated_after_a_failure_says_nothing_new() -> None:
    """D-19: tool error then error result is one failure."""
    failed = ToolResult("c", "no", error=True)

    assert len(of(published(HOSTED, failed, failed, STOP), ToolFailed)) == 1


@pytest.mark.parametrize(
    "events",
    [
        (ToolInputStart("c", "read"), ToolInputStart("c", "read")),
        (ToolInputStart("c", "read"), ToolInputEnd("c"), ToolInputStart("c", "read")),
        (ToolCall("c", "read", {}), ToolInputStart("c", "read")),
        (ToolInputChunk("c", "x"),),
        (ToolInputEnd("c"),),
        (ToolInputStart("c", "read"), ToolCall("c", "write", {})),
        (ToolCall("c", "read", {}), ToolCall("c", "read", {})),
        (ToolResult("c", "x"),),
        (HOSTED, ToolResult("c", "x"), ToolResult("c", "x")),
        (HOSTED, ToolResult("c", "x"), ToolResult("c", "x", error=True)),
        (HOSTED, ToolResult("c", "x", error=True), ToolResult("c", "x")),
        (ToolInputStart("", "read"),),
        (ToolInputStart("c" * 257, "read"),),
        (ToolCall("", "read", {}),),
        (ToolCall("c" * 257, "read", {}),),
    ],
)
def test_a_tool_stream_that_breaks_its_grammar_is_a_violation(
    events: tuple[ProviderEvent, ...],
) -> None:
    """D-18: duplicate starts, calls or results, a changed name, a result before its call.

    Nor is an id that no log can hold a reason to crash.
    """
    turn_stream = TurnStream("msg_a", "build", MODEL)

    *before, last = events
    for event in before:
        turn_stream.receive(event)
    with pytest.raises(ProtocolViolation):
        turn_stream.receive(last)

    # The step starts once, whatever the stream broke: its failure has a message to stand on.
    durable = turn_stream.receive(ProviderFailure("malformed-stream", "no"))[0]
    started = any(isinstance(event, StepStarted) for event in durable)
    assert started is (not before)


def test_an_interrupt_in_the_middle_of_a_tools_input_fails_it() -> None:
    """D-14: nobody will call it any more, and a session at rest has nothing pending."""
    turn_stream = TurnStream("msg_a", "build", MODEL)
    input_events = (ToolInputStart("c1", "read"), ToolInputChunk("c1", '{"pa'), HOSTED)
    events = tuple(item for event in input_events for item in turn_stream.receive(event)[0])

    stopped = turn_stream.interrupt()

    assert of(stopped, ToolInputEnded)[0].text == '{"pa'
    assert [(event.call_id, event.error.message) for event in of(stopped, ToolFailed)] == [
        ("c1", INTERRUPTED_TOOL),
        ("c", INTERRUPTED_TOOL),
    ]
    assert isinstance(stopped[-1], StepFailed)
    session = given(CREATED, INITIALISED, claimed(), dispatched(), *events, *stopped)
    assert fail_abandoned_calls(session) == ()
    assert verify(recorded(CREATED, INITIALISED, claimed(), dispatched(), *events, *stopped)) == []


def test_a_raised_failure_in_the_middle_of_a_tools_input_leaves_it_pending() -> None:
    """D-14: its raw text is kept, and the next turn says that it was interrupted."""
    cut = ProviderFailure("network", "cut")
    events = published(ToolInputStart("c1", "read"), ToolInputChunk("c1", '{"pa'), cut)

    assert of(events, ToolFailed) == []
    session = given(CREATED, INITIALISED, dispatched(), *events)
    (block,) = assistant_of(session).content
    assert isinstance(block, ToolBlock)
    assert block.state == PendingCall(input='{"pa')
    assert [event.call_id for event in of(fail_abandoned_calls(session), ToolFailed)] == ["c1"]
