"""Ownership: one owner per generation; liveness only says when it is worth trying."""

from dataclasses import replace

import pytest
from libs.session.tests.conftest import CREATED, claimed, dispatched, given, released

from fairlead_schema.events import AttemptDispatched
from fairlead_session.execution.ownership import (
    OwnedByOther,
    ProcessLife,
    claim,
    needs_release,
    owns,
    release,
)
from fairlead_session.execution.rest import stop_reason
from fairlead_session.state.execution import Interrupt


def test_an_unowned_session_is_claimed_with_the_next_generation() -> None:
    """P-02: every claim is one generation higher than the last."""
    assert claim(given(CREATED), "run_a", None) == (claimed(1, "run_a"),)


def test_a_released_session_is_claimed_with_a_higher_generation() -> None:
    """P-02: generations never repeat, even after a rest."""
    session = given(CREATED, claimed(1), released())

    assert session.execution.owner is None
    assert claim(session, "run_b", None) == (claimed(2, "run_b"),)


def test_a_live_owner_is_left_alone() -> None:
    """P-02: the release of a live owner overlooks nothing, so nobody disturbs it."""
    assert claim(given(CREATED, claimed(1)), "run_b", "alive") == OwnedByOther("run_a")


@pytest.mark.parametrize("life", ["gone", "silent", None])
def test_an_owner_that_is_not_known_to_live_is_replaced(life: ProcessLife | None) -> None:
    """P-01, P-02: a dead or silent owner's session is taken over."""
    assert claim(given(CREATED, claimed(1)), "run_b", life) == (claimed(2, "run_b"),)


def test_the_owner_itself_may_claim_again() -> None:
    """P-02: a runner that lost its memory fences its own earlier self."""
    assert claim(given(CREATED, claimed(1)), "run_a", "alive") == (claimed(2, "run_a"),)


def test_an_older_generation_owns_nothing() -> None:
    """P-02: a take-over fences every earlier claim, by the same runner too."""
    session = given(CREATED, claimed(1), claimed(2, "run_b"))

    assert owns(session, "run_b", 2)
    assert not owns(session, "run_a", 1)
    assert not owns(session, "run_b", 1)
    assert not owns(given(CREATED), "run_a", 0)


def test_a_release_names_its_generation_and_reason() -> None:
    """P-27: why a session rests is in the log."""
    session = given(CREATED, claimed(3))

    assert release(session, "parked") == released("parked", generation=3)
    later = release(session, "retry-later", detail="busy", wake_at=9)
    assert (later.generation, later.reason, later.detail, later.wake_at) == (
        3,
        "retry-later",
        "busy",
        9,
    )
    assert given(CREATED, claimed(3), released("parked", 3)).execution.rested == "parked"


def test_a_rest_that_says_nothing_new_needs_no_release() -> None:
    """P-27: without an owner and an attempt in the log, only a new reason is written."""
    parked = given(CREATED, claimed(1), released("parked"))

    assert not needs_release(parked, "parked")
    assert not needs_release(parked, "idle")
    assert needs_release(parked, "failed")
    assert needs_release(given(CREATED), "parked")


def test_an_owner_or_an_attempt_in_the_log_needs_a_release() -> None:
    """P-27: the log says that work began, so it must say that the session rests."""
    lost = given(CREATED, claimed(1), dispatched(), released("idle"))

    assert needs_release(given(CREATED, claimed(1)), "idle")
    assert lost.turn.attempt is not None
    assert needs_release(lost, "idle")


def test_a_stop_says_whether_a_person_declined() -> None:
    """P-27: a stop without a declined call is an interrupt."""
    assert stop_reason("bash") == "declined"
    assert stop_reason(None) == "interrupted"


def test_nobody_releases_what_nobody_owns() -> None:
    """P-02: releasing an unowned session is a defect of ours."""
    with pytest.raises(AssertionError, match="owned"):
        release(given(CREATED), "idle")


def test_an_attempt_belongs_to_the_generation_that_dispatched_it() -> None:
    """P-01: a new owner sees that an attempt is not its own."""
    event: AttemptDispatched = dispatched()
    session = given(CREATED, claimed(1), event, claimed(2, "run_b"))

    assert session.turn.attempt is not None
    assert (session.turn.attempt.generation, session.execution.generation) == (1, 2)


def test_an_interrupt_that_is_not_honoured_needs_a_release() -> None:
    """Only a release ends an interrupt, also where the session rests as interrupted already."""
    stopped = given(CREATED, claimed(1), released("interrupted"))
    execution = replace(stopped.execution, interrupt=Interrupt(None))

    assert not needs_release(stopped, "interrupted")
    assert needs_release(replace(stopped, execution=execution), "interrupted")
