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
    recorded,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.events import (
    AttemptFinished,
    CompactionEnded,
    CompactionStarted,
    ExecutionRecovered,
    ReasoningEnded,
    ReasoningStarted,
    SessionEvent,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.message import AssistantMessage, ReasoningBlock, ToolBlock
from fairlead_schema.tools.content import Executor
from fairlead_session.execution.recovery import (
    INTERRUPTED_TOOL,
    INTERRUPTED_TURN,
    fail_abandoned_calls,
    fail_unrecordable_turn,
    settle_attempt,
)
from fairlead_session.next_move import (
    AwaitCalls,
    EndStep,
    SettleInterrupted,
    TakeTurn,
    next_move,
)
from fairlead_session.state.session import Session
from fairlead_session.turn.step_end import end_step
from fairlead_session.verify.verify import verify

BEFORE = (CREATED, INITIALISED, admitted("msg_1"), claimed(), promoted("msg_1"), dispatched())


def settled(*output: SessionEvent) -> tuple[Session, tuple[SessionEvent, ...]]:
    session = given(*BEFORE, *output, claimed(2, "run_b"))
    move = next_move(session)
    assert isinstance(move, SettleInterrupted)
    events = settle_attempt(session, move.attempt, "auto", "que_1")
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
    assert session.turn.attempt is None


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


def test_before_a_turn_every_call_that_nobody_will_settle_is_failed() -> None:
    """E-19, D-14: an input that never became a call, and a hosted call without its stream."""
    metadata = {"signature": "s"}
    hosted = ToolCalled(
        assistant_message_id="msg_a",
        call_id="h",
        tool="search",
        input={},
        provider=Executor(executed=True, metadata=metadata),
    )
    pending_input = ToolInputStarted(assistant_message_id="msg_a", call_id="p", name="read")
    named = ToolInputStarted(assistant_message_id="msg_a", call_id="h", name="search")
    session = given(*BEFORE, step_started(), pending_input, named, hosted, step_ended())

    events = fail_abandoned_calls(session)

    failed = [event for event in events if isinstance(event, ToolFailed)]
    assert [(event.call_id, event.error.message, event.provider.executed) for event in failed] == [
        ("p", INTERRUPTED_TOOL, False),
        ("h", INTERRUPTED_TOOL, True),
    ]
    after = then(session, *events)
    assert fail_abandoned_calls(after) == ()
    blocks = [event for event in assistant_of(after).content if isinstance(event, ToolBlock)]
    assert [block.state.status for block in blocks] == ["error", "error"]
    assert blocks[1].provider is not None
    assert blocks[1].provider.metadata == metadata


def test_a_call_that_a_worker_has_is_not_abandoned() -> None:
    """E-14, E-20: the log knows it, and its worker settles it."""
    assert fail_abandoned_calls(given(*BEFORE, step_started(), *called("c1"))) == ()


def test_what_compaction_took_out_of_the_context_stays_as_it_was() -> None:
    """E-21: nothing of it reaches a model any more."""
    pending_input = ToolInputStarted(assistant_message_id="msg_a", call_id="p", name="read")
    session = given(*BEFORE, step_started(), pending_input, step_ended())
    compacted = then(
        session,
        CompactionStarted(message_id="msg_c", reason="manual"),
        CompactionEnded(message_id="msg_c", reason="manual", text="so far", recent=""),
    )

    assert len(fail_abandoned_calls(session)) == 1
    assert fail_abandoned_calls(compacted) == ()


def test_a_settlement_names_the_message_whose_call_it_settles() -> None:
    """D-20: a call id that comes again in a later turn settles the later one."""
    first = given(*BEFORE, step_started(), *called("c1"), success("msg_a"), step_ended())
    again = tuple(
        event.model_copy(update={"assistant_message_id": "msg_b"})
        for event in (dispatched(), step_started(), *called("c1"))
    )

    second = then(first, *again)
    stale = then(second, success("msg_a"))
    settled_ = then(second, success("msg_b"))

    assert [call.assistant_message_id for call in second.calls] == ["msg_b"]
    assert stale.calls == second.calls
    assert settled_.calls == ()
    message = settled_.transcript.find("msg_b")
    assert isinstance(message, AssistantMessage)
    assert isinstance(message.content[0], ToolBlock)
    assert message.content[0].state.status == "completed"


def success(assistant: str) -> ToolSucceeded:
    return ToolSucceeded(
        assistant_message_id=assistant,
        call_id="c1",
        structured={},
        content=(),
        provider=Executor(),
    )


def test_an_answer_that_the_log_cannot_hold_fails_its_turn() -> None:
    """D-10, E-14: what is open closes, a call that a worker has is awaited, and nothing is retried."""
    nothing_yet = given(*BEFORE)
    running = given(
        *BEFORE,
        step_started(),
        TextStarted(assistant_message_id="msg_a", text_id="t"),
        *called("c1"),
        *called("h", executed=True),
    )

    early, late = (
        fail_unrecordable_turn(nothing_yet, "too long"),
        fail_unrecordable_turn(running, "too long"),
    )

    assert [type(event) for event in early] == [StepStarted, StepFailed]
    assert [type(event) for event in late] == [TextEnded, ToolFailed, AttemptFinished]
    assert "too long" in str(late[-1])
    assert next_move(then(nothing_yet, *early)).reason == "failed"  # type: ignore[union-attr]
    waiting = then(running, *late)
    assert isinstance(next_move(waiting), AwaitCalls)
    done = then(waiting, success("msg_a"))
    move = next_move(done)
    assert isinstance(move, EndStep)
    ended = then(done, *end_step(move.attempt))
    assert next_move(ended).reason == "failed"  # type: ignore[union-attr]
    assert fail_unrecordable_turn(ended, "too long") == ()
    before = (*BEFORE, step_started(), TextStarted(assistant_message_id="msg_a", text_id="t"))
    rest = (
        *called("c1"),
        *called("h", executed=True),
        *late,
        success("msg_a"),
        *end_step(move.attempt),
    )
    assert verify(recorded(*before, *rest)) == []
