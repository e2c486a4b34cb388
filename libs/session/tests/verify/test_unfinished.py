"""What should still move: told of every prefix of a life, and of nothing that may rest."""

from hypothesis import given
from libs.session.tests.conftest import (
    CREATED,
    PROPERTY,
    admitted,
    claimed,
    dispatched,
    promoted,
    recorded,
    released,
    step_ended,
    step_started,
)
from libs.session.tests.test_life import lived, plans
from libs.session.tests.verify.test_verify import OPENED, RETRIED, STREAMING, called, settled

from fairlead_schema.events import (
    AttemptOverflowed,
    CompactionFailed,
    CompactionRequested,
    InterruptRequested,
    ResumeRequested,
    SessionEvent,
    SessionPurged,
)
from fairlead_session.verify.unfinished import find_unfinished_work


def undone(*events: SessionEvent) -> tuple[str, ...]:
    return find_unfinished_work(recorded(*events))


def test_a_pending_input_should_move() -> None:
    assert undone(CREATED, admitted("msg_1")) == ("input msg_1 is pending",)


def test_an_input_that_nobody_is_asked_to_run_may_rest() -> None:
    """A-22: admitted only."""
    assert undone(CREATED, admitted("msg_1", resume=False)) == ()


def test_a_dead_owners_turn_should_move() -> None:
    assert undone(*OPENED) == ("attempt att_msg_a has no outcome",)


def test_a_turn_that_is_owed_again_should_move() -> None:
    sentences = undone(*OPENED, RETRIED, released("handover"))

    assert sentences == ("a turn is owed",)


def test_a_purged_session_leaves_nothing() -> None:
    assert undone(*OPENED, SessionPurged()) == ()


def test_an_owner_without_work_is_nothing_to_wait_for() -> None:
    assert undone(CREATED, claimed()) == ()


def test_an_answered_session_may_rest() -> None:
    assert undone(*STREAMING, step_ended(), released()) == ()


def test_a_parked_session_waits_for_its_call_and_goes_on_after_it() -> None:
    parked = (*STREAMING, called(), released("parked"))

    assert undone(*parked) == ("call call_1 is not settled",)
    assert undone(*parked, settled()) == ("attempt att_msg_a has no outcome",)
    assert undone(*parked, settled(), claimed(2), step_ended(), released("handover", 2)) == (
        "a turn is owed",
    )


def test_a_failed_turn_leaves_its_session_in_peace() -> None:
    """B-23: only a new request continues."""
    failed = (*STREAMING, step_ended(), admitted("msg_2"), released("failed"))

    assert undone(*failed) == ()
    assert undone(*failed, ResumeRequested()) == ("a turn is owed", "input msg_2 is pending")


def test_an_interrupt_keeps_the_inbox_and_a_prompt_after_it_counts() -> None:
    """C-12, C-13, C-16: earlier wakes are dropped, later ones are not."""
    events = (*STREAMING, called(), admitted("msg_2"), InterruptRequested())
    stopped = (settled(), step_ended(), released("interrupted"))

    assert "an interrupt is not honoured" in undone(*events)
    assert undone(*events, *stopped) == ()
    assert undone(*events, admitted("msg_3"), *stopped) == (
        "input msg_2 is pending",
        "input msg_3 is pending",
    )


def test_a_continuation_is_owed_no_more_once_it_is_dispatched() -> None:
    events = (*STREAMING, called(), settled(), step_ended(), dispatched("msg_b", 2))
    ended = (step_started("msg_b"), step_ended("msg_b"), released())

    assert undone(*events, *ended) == ()


def test_a_compaction_that_was_asked_for_should_come() -> None:
    """C-25, G-40: until the log says what came of it."""
    over = CompactionFailed(reason="manual", outcome="nothing", message="nothing was said yet")

    assert undone(CREATED, CompactionRequested()) == ("a compaction was asked for",)
    assert undone(CREATED, CompactionRequested(), claimed(), over) == ()
    assert undone(CREATED, CompactionRequested(), claimed(), InterruptRequested()) == (
        "an interrupt is not honoured",
    )


def test_an_overflow_owes_its_turn() -> None:
    overflow = AttemptOverflowed(attempt_id="att_msg_a", message="too long")
    events = (CREATED, admitted("msg_1"), claimed(), promoted("msg_1"), dispatched(), overflow)

    assert undone(*events) == ("a turn is owed",)


def test_a_promotion_without_its_turn_should_move() -> None:
    sentences = undone(
        CREATED, admitted("msg_1"), claimed(), promoted("msg_1"), released("handover")
    )

    assert sentences == ("a turn is owed",)


@PROPERTY
@given(plans)
def test_a_finished_life_leaves_nothing(plan: list[str]) -> None:
    assert find_unfinished_work(lived(plan).log) == ()
