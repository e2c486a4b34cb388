"""What a failed turn means for what is pending: an error inside the answer, or of the request itself."""

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    admitted,
    claimed,
    dispatched,
    given,
    promoted,
    released,
    step_started,
    then,
)

from fairlead_schema.catalog import Tokens
from fairlead_schema.events import (
    AttemptFinished,
    ExecutionRecovered,
    ResumeRequested,
    SessionEvent,
    StepFailed,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.provider.events import ProviderFailure, ToolCall
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.execution.recovery import hand_over, settle_attempt, stop_open_work
from fairlead_session.next_move import AwaitCalls, DrainLimits, EndStep, Rest, TakeTurn, next_move
from fairlead_session.state.session import Session
from fairlead_session.turn.step_end import end_step
from fairlead_session.turn.stream import TurnStream

TURN = (CREATED, INITIALISED, admitted("msg_1"), admitted("msg_q", delivery="queue"), claimed(),
        promoted("msg_1"), dispatched(), step_started())  # fmt: skip
BROKE = ErrorInfo(message="it broke")
CALL: tuple[SessionEvent, ...] = (
    ToolInputStarted(assistant_message_id="msg_a", call_id="c1", name="read"),
    ToolCalled(
        assistant_message_id="msg_a", call_id="c1", tool="read", input={}, provider=Executor()
    ),
)
SETTLED = ToolSucceeded(
    assistant_message_id="msg_a", call_id="c1", structured={}, content=(), provider=Executor()
)


def failed(*, raised: bool) -> StepFailed:
    return StepFailed(assistant_message_id="msg_a", error=BROKE, raised=raised or None)


def broke_off(*, raised: bool) -> AttemptFinished:
    return AttemptFinished(
        attempt_id="att_1",
        assistant_message_id="msg_a",
        finish="error",
        cost=0.0,
        tokens=Tokens(),
        error=BROKE,
        raised=raised or None,
    )


def after_its_calls(*more: SessionEvent, raised: bool) -> Session:
    """A stream that broke off while a call ran, and the call settled."""
    session = given(*TURN, *CALL, broke_off(raised=raised), *more)
    assert isinstance(next_move(session), AwaitCalls)
    done = then(session, SETTLED)
    move = next_move(done)
    assert isinstance(move, EndStep)
    return then(done, *end_step(move.attempt))


def test_a_raised_failure_leaves_what_is_pending_pending() -> None:
    """B-24: the drain fails with the turn, also if another owner writes the rest after a crash."""
    broken = given(*TURN, failed(raised=True))

    assert next_move(broken) == Rest("failed", "it broke")
    assert next_move(then(broken, claimed(2, "run_b"))) == Rest("failed", "it broke")
    resting = then(broken, released("failed"))
    assert [item.message_id for item in resting.inbox.pending] == ["msg_q"]


def test_an_error_inside_the_answer_does_not_fail_the_drain() -> None:
    """B-24: the queued input is processed next."""
    move = next_move(given(*TURN, failed(raised=False)))

    assert isinstance(move, TakeTurn)
    assert [item.message_id for item in move.inputs] == ["msg_q"]


def test_a_raised_failure_after_local_calls_fails_the_drain_too() -> None:
    """B-24, E-14: their results are recorded first, then the failure surfaces."""
    assert next_move(after_its_calls(raised=True)) == Rest("failed", "it broke")


def test_a_provider_error_after_a_local_call_records_the_call_and_does_not_continue() -> None:
    """E-15, E-04: no turn follows for its result; what is pending is another activity."""
    after = after_its_calls(raised=False)

    assert (after.execution.owed, after.calls) == (False, ())
    move = next_move(after)
    assert isinstance(move, TakeTurn)
    assert [item.message_id for item in move.inputs] == ["msg_q"]


@pytest.mark.parametrize(
    "new_work", [admitted("msg_2"), ResumeRequested(), ResumeRequested(forced=False)]
)
def test_what_is_asked_since_the_turn_began_is_a_wake_of_its_own(new_work: SessionEvent) -> None:
    """C-08: the failure is told, and a fresh drain follows; asked before or after it the same."""
    before = given(*TURN, new_work, failed(raised=True))
    after = given(*TURN, failed(raised=True), new_work)
    during = after_its_calls(new_work, raised=True)

    assert [isinstance(next_move(item), TakeTurn) for item in (before, after, during)] == [True] * 3


def test_input_that_asks_for_nothing_is_no_wake() -> None:
    """A-22, B-24."""
    broken = given(*TURN, admitted("msg_2", resume=False), failed(raised=True))

    assert next_move(broken) == Rest("failed", "it broke")


@pytest.mark.parametrize("in_stream", [True, False])
def test_the_stream_says_how_it_failed(in_stream: bool) -> None:  # noqa: FBT001
    """B-24, D-27: with calls under way it is said when they are settled."""
    failure = ProviderFailure("server-error", "it broke", in_stream=in_stream)
    plain, calling = (TurnStream("msg_a", "build", dispatched().model) for _ in range(2))
    calling.receive(ToolCall("c1", "read", {}))

    alone, waiting = plain.receive(failure)[0][-1], calling.receive(failure)[0][-1]

    assert isinstance(alone, StepFailed)
    assert isinstance(waiting, AttemptFinished)
    assert alone.raised is waiting.raised is (None if in_stream else True)


def test_an_empty_text_that_was_ended_is_not_ended_again() -> None:
    """D-10: what a crash or a stop finds open is closed once, and nothing else."""
    ended = (
        TextStarted(assistant_message_id="msg_a", text_id="t1"),
        TextEnded(assistant_message_id="msg_a", text_id="t1", text=""),
        TextStarted(assistant_message_id="msg_a", text_id="t2"),
    )
    session = given(*TURN, *ended)
    assert session.turn.attempt is not None

    recovered = settle_attempt(session, session.turn.attempt, "auto", "que_1")
    for events in (recovered, stop_open_work(session)):
        assert [event.text_id for event in events if isinstance(event, TextEnded)] == ["t2"]


def test_a_hand_over_uses_nothing_of_the_recovery_budget() -> None:
    """P-01, P-02: a runner that leaves in good order is no crash, however often one does."""
    session = given(*TURN)
    assert session.turn.attempt is not None
    after = then(session, *hand_over(session.turn.attempt), released("handover"))
    crash = ExecutionRecovered(attempt_id="att_1", action="retried", detail="it died")

    assert (after.execution.recoveries, after.execution.owed) == (0, True)
    assert isinstance(next_move(after, DrainLimits(recoveries_max=0)), TakeTurn)
    assert then(after, crash).execution.recoveries == 1
