"""What a session does next, over every kind of state."""

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
    step_ended,
    step_started,
    then,
)

from fairlead_schema.events import (
    ExecutionRecovered,
    InterruptRequested,
    ResumeRequested,
    SessionEvent,
    SessionMoved,
    StepFailed,
    ToolCalled,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.input.admission import admit, receipt
from fairlead_session.next_move import (
    DrainLimits,
    InitialiseContext,
    Rest,
    SettleInterrupted,
    Stop,
    TakeTurn,
    is_moving,
    next_move,
)
from fairlead_session.state.session import Session

READY = (CREATED, INITIALISED)
ANSWERED = (promoted("msg_1"), dispatched(), step_started(), step_ended())
RETRIED = ExecutionRecovered(attempt_id="att_msg_a", action="retried", detail="no output")


def turn(session: Session) -> tuple[list[str], int]:
    move = next_move(session)
    assert isinstance(move, TakeTurn)
    return [item.message_id for item in move.inputs], move.step


@pytest.mark.parametrize(
    "events",
    [
        (CREATED,),
        READY,
        (*READY, claimed()),
        (*READY, admitted("msg_1"), claimed(), *ANSWERED),
        (*READY, admitted("msg_1"), claimed(), *ANSWERED, released()),
    ],
    ids=["created", "initialised", "claimed", "answered", "released"],
)
def test_a_session_with_nothing_to_do_rests(events: tuple[SessionEvent, ...]) -> None:
    """B-16: without eligible input and without an owed turn the session rests under any owner."""
    assert next_move(given(*events)) == Rest("idle")


@pytest.mark.parametrize("delivery", ["steer", "queue"])
def test_without_an_epoch_the_context_comes_before_any_promotion(delivery: str) -> None:
    """B-20: the first move is to observe, and the input is still pending."""
    input_ = admitted("msg_1").model_copy(update={"delivery": delivery})
    session = given(CREATED, input_)

    assert next_move(session) == InitialiseContext()
    assert len(session.inbox.pending) == 1


def test_pending_input_opens_a_turn_at_its_first_step() -> None:
    """B-15, B-21: whatever ran before, promoted input starts at step one."""
    session = given(*READY, dispatched(step=7), step_started(), step_ended(), admitted("msg_1"))

    assert turn(session) == (["msg_1"], 1)


def test_a_resume_runs_a_turn_with_nothing_pending() -> None:
    """B-17: a forced run makes an attempt even with empty history."""
    assert turn(given(*READY, ResumeRequested())) == ([], 1)


def test_local_tool_results_owe_the_model_another_turn() -> None:
    """B-10, D-21: a settled local call continues at the next step, and steers join it."""
    session = given(
        *READY,
        promoted("msg_1"),
        dispatched(),
        step_started(),
        ToolInputStarted(assistant_message_id="msg_a", call_id="c", name="read"),
        ToolCalled(
            assistant_message_id="msg_a", call_id="c", tool="read", input={}, provider=Executor()
        ),
        ToolSucceeded(
            assistant_message_id="msg_a",
            call_id="c",
            structured={},
            content=(),
            provider=Executor(),
        ),
        step_ended(finish="tool-calls"),
    )

    assert turn(session) == ([], 2)
    assert turn(then(session, admitted("msg_2"))) == (["msg_2"], 1)


def test_a_failed_step_owes_nothing() -> None:
    """B-23: what was promoted before a failing turn is not retried by a wake."""
    failed = StepFailed(assistant_message_id="msg_a", error=ErrorInfo(message="no"))
    session = given(*READY, promoted("msg_1"), dispatched(), step_started(), failed)

    assert next_move(session) == Rest("idle")


def test_an_interrupt_rests_the_owned_session_and_keeps_its_inbox() -> None:
    """C-12, C-16: interruption comes before everything else and loses no input."""
    session = given(*READY, admitted("msg_1"), claimed(), dispatched(), InterruptRequested())

    assert next_move(session) == Stop()
    assert len(session.inbox.pending) == 1


def test_an_interrupt_of_an_unowned_session_changes_nothing() -> None:
    """C-11: there is no drain to stop, and the next one is not stopped either."""
    session = given(*READY, admitted("msg_1"), InterruptRequested())

    assert next_move(session) == Rest("idle")
    assert turn(then(session, ResumeRequested(forced=False))) == (["msg_1"], 1)


def test_a_release_ends_the_interruption() -> None:
    """C-16: the next drain starts afresh with the input that was kept."""
    session = given(
        *READY, admitted("msg_1"), claimed(), InterruptRequested(), released("interrupted")
    )

    assert turn(then(session, ResumeRequested(forced=False))) == (["msg_1"], 1)


@pytest.mark.parametrize("started", [False, True], ids=["no output", "partial output"])
def test_a_dead_owners_attempt_is_settled_before_anything_continues(*, started: bool) -> None:
    """P-01: neither new input nor a resume comes before the attempt's settlement."""
    output = (step_started(),) if started else ()
    session = given(*READY, promoted("msg_1"), dispatched(), *output, admitted("msg_2"))

    move = next_move(then(session, claimed(2, "run_b")))

    assert isinstance(move, SettleInterrupted)
    assert (move.attempt.attempt_id, move.attempt.started) == ("att_msg_a", started)


def test_a_retried_attempt_runs_again_without_a_second_promotion() -> None:
    """P-01, B-22: the turn is owed again, and its input stays promoted."""
    session = given(*READY, admitted("msg_1"), promoted("msg_1"), dispatched(), RETRIED)

    assert turn(session) == ([], 1)
    assert session.execution.recoveries == 1


def test_recoveries_beyond_the_budget_hold_the_session() -> None:
    """P-01: a turn that keeps killing its owner is not tried for ever."""
    session = given(*READY, admitted("msg_1"), promoted("msg_1"))
    for _ in range(3):
        session = then(session, dispatched(), RETRIED)

    assert isinstance(next_move(session, DrainLimits(recoveries_max=3)), TakeTurn)
    assert next_move(then(session, dispatched(), RETRIED), DrainLimits(recoveries_max=3)) == Rest(
        "held", "recovered 4 times without finishing a turn"
    )
    assert next_move(session, DrainLimits(recoveries_max=0)) == Rest(
        "held", "recovered 3 times without finishing a turn"
    )


def test_new_input_moves_a_held_session_again() -> None:
    """P-01: a person who says more opens a turn, and an answer restores the budget."""
    session = given(*READY, promoted("msg_1"), dispatched(), RETRIED, admitted("msg_2"))

    assert isinstance(next_move(session, DrainLimits(recoveries_max=0)), TakeTurn)
    after = then(session, promoted("msg_2"), dispatched("msg_b"), step_started("msg_b"))
    assert then(after, step_ended("msg_b")).execution.recoveries == 0


def test_a_move_clears_the_epoch_so_that_the_destination_is_observed() -> None:
    """Q-04, F-44: after a move the first thing is a complete baseline of the destination."""
    moved = SessionMoved(location=LocationRef(directory="/elsewhere"))

    assert next_move(given(*READY, moved, admitted("msg_1"))) == InitialiseContext()


def test_the_steer_limit_of_a_boundary_comes_from_the_limits() -> None:
    """P-05: the settings bound how many steers join one turn."""
    session = given(*READY, admitted("msg_1"), admitted("msg_2"))

    move = next_move(session, DrainLimits(steers_max=1))

    assert isinstance(move, TakeTurn)
    assert [item.message_id for item in move.inputs] == ["msg_1"]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((CREATED,), False),
        ((CREATED, admitted("msg_1")), True),
        ((CREATED, admitted("msg_1", resume=False)), False),
        ((CREATED, admitted("msg_1", resume=False), admitted("msg_2")), True),
        ((CREATED, ResumeRequested()), True),
        ((CREATED, admitted("msg_1"), claimed(), released("failed")), False),
        ((CREATED, admitted("msg_1"), claimed(), released("context-unavailable")), True),
        ((CREATED, admitted("msg_1"), claimed(), released("handover")), True),
        ((CREATED, admitted("msg_1"), claimed(), promoted("msg_1"), dispatched()), True),
        ((CREATED, admitted("msg_1"), claimed(), *ANSWERED), False),
    ],
)
def test_a_session_moves_while_asked_for_work_is_undone(
    events: tuple[SessionEvent, ...],
    expected: bool,  # noqa: FBT001
) -> None:
    """P-03, A-22: what a sweep should wake, and what it leaves in peace."""
    assert is_moving(given(*events)) is expected


def test_each_queued_activity_starts_again_at_step_one() -> None:
    """E-26: the count belongs to an activity; the second queued input begins its own."""
    queued = (admitted("msg_1", delivery="queue"), admitted("msg_2", delivery="queue"))
    session = given(CREATED, INITIALISED, *queued, claimed())
    for number in (1, 2):
        move = next_move(session, DrainLimits(turns_max=1))
        assert isinstance(move, TakeTurn)
        assert (move.step, [item.message_id for item in move.inputs]) == (1, [f"msg_{number}"])
        turn = (promoted(f"msg_{number}"), dispatched(), step_started(), step_ended())
        session = then(session, *turn)

    assert next_move(session) == Rest("idle")


def test_a_promotion_that_nobody_admitted_counts_as_both() -> None:
    """B-04, A-20: it is its own admission, and an exact retry gets a receipt that says so."""
    session = given(CREATED, promoted("msg_1"))

    admission = session.inbox.admissions["msg_1"]
    outcome = admit(session, "msg_1", Prompt(text="hello"), "steer")

    assert admission.admitted_seq == admission.promoted_seq == 2
    assert outcome == ()
    assert receipt(session, "msg_1", Prompt(text="hello")).promoted_seq == 2
