"""What a dead owner left behind: settled by what is durable, never by guessing."""

from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    admitted,
    assistant_of,
    claimed,
    dispatched,
    given,
    promoted,
    step_started,
    then,
)

from fairlead_schema.events import (
    ExecutionRecovered,
    ReasoningEnded,
    ReasoningStarted,
    SessionEvent,
    StepFailed,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.message import ReasoningBlock, ToolBlock
from fairlead_schema.tool import Executor
from fairlead_session.drain import SettleInterrupted, TakeTurn, next_move
from fairlead_session.settlement import INTERRUPTED_TOOL, INTERRUPTED_TURN, settle
from fairlead_session.state import Session

BEFORE = (CREATED, INITIALISED, admitted("msg_1"), claimed(), promoted("msg_1"), dispatched())


def settled(*output: SessionEvent) -> tuple[Session, tuple[SessionEvent, ...]]:
    session = given(*BEFORE, *output, claimed(2, "run_b"))
    move = next_move(session)
    assert isinstance(move, SettleInterrupted)
    events = settle(session, move.attempt)
    return then(session, *events), events


def called(id_: str, *, executed: bool = False) -> tuple[SessionEvent, ...]:
    return (
        ToolInputStarted(assistant_message_id="msg_a", call_id=id_, name="read"),
        ToolCalled(
            assistant_message_id="msg_a",
            call_id=id_,
            tool="read",
            input={},
            provider=Executor(executed=executed),
        ),
    )


def test_an_attempt_without_output_is_simply_owed_again() -> None:
    """P-01: nothing was said, so nothing is closed, and what was done is a visible event."""
    session, events = settled()

    assert [type(event) for event in events] == [ExecutionRecovered]
    assert ExecutionRecovered.visibility == "notice"
    assert isinstance(next_move(session), TakeTurn)
    assert session.attempt is None


def test_partial_output_is_closed_and_the_step_fails_as_interrupted() -> None:
    """P-01, D-11: open blocks close as they stand, the step fails, the turn is owed again."""
    session, events = settled(
        step_started(),
        TextStarted(assistant_message_id="msg_a", text_id="t0"),
        TextEnded(assistant_message_id="msg_a", text_id="t0", text="said"),
        TextStarted(assistant_message_id="msg_a", text_id="t1"),
        ReasoningStarted(assistant_message_id="msg_a", reasoning_id="r"),
    )

    assert [type(event) for event in events] == [
        TextEnded,
        ReasoningEnded,
        StepFailed,
        ExecutionRecovered,
    ]
    assistant = assistant_of(session)
    assert assistant.error is not None
    assert assistant.error.message == INTERRUPTED_TURN
    assert [getattr(block, "text", None) for block in assistant.content] == ["said", "", ""]
    assert isinstance(next_move(session), TakeTurn)


def test_what_was_closed_before_the_crash_stays_as_it_was() -> None:
    """P-01: a finished reasoning block is not closed twice."""
    session, events = settled(
        step_started(),
        ReasoningStarted(assistant_message_id="msg_a", reasoning_id="r"),
        ReasoningEnded(assistant_message_id="msg_a", reasoning_id="r", text="thought"),
    )

    assert ReasoningEnded not in [type(event) for event in events]
    block = assistant_of(session).content[0]
    assert isinstance(block, ReasoningBlock)
    assert block.text == "thought"


def test_unsettled_calls_fail_and_settled_ones_keep_their_result() -> None:
    """D-14, P-01: pending input and hosted calls fail as interrupted, once each."""
    done = ToolSucceeded(
        assistant_message_id="msg_a",
        call_id="done",
        structured={"ok": True},
        content=(),
        provider=Executor(),
    )
    session, events = settled(
        step_started(),
        ToolInputStarted(assistant_message_id="msg_a", call_id="pending", name="read"),
        *called("hosted", executed=True),
        *called("done"),
        done,
    )

    failed = [event for event in events if isinstance(event, ToolFailed)]
    assert [event.call_id for event in failed] == ["pending", "hosted"]
    assert {event.error.message for event in failed} == {INTERRUPTED_TOOL}
    assert [event.provider.executed for event in failed] == [False, True]
    states = [
        block.state.status
        for block in assistant_of(session).content
        if isinstance(block, ToolBlock)
    ]
    assert states == ["error", "error", "completed"]


def test_a_settled_attempt_is_not_settled_again() -> None:
    """P-01: a third owner finds nothing left of it."""
    session, _events = settled(step_started())

    assert not isinstance(next_move(then(session, claimed(3, "run_c"))), SettleInterrupted)
