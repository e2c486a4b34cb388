"""An imported session has the state of its origin, and begins nothing before somebody here asks."""

import pytest
from libs.session.tests.conftest import admitted, claimed, given, promoted, recorded, then

from fairlead_schema.events import (
    CompactionRequested,
    ExecutionReleased,
    ModelSwitched,
    ResumeRequested,
    SessionEvent,
)
from fairlead_schema.record import Commit, ImportMark, Recorded, decode, encode
from fairlead_session.execution.commands import compact, is_at_rest, resume
from fairlead_session.explain import explain
from fairlead_session.fold.evolve import evolve
from fairlead_session.next_move import is_moving, wake_has_work
from fairlead_session.people.asks import expire_ask
from fairlead_session.state.session import Session
from fairlead_session.transfer.events import decode_stored
from fairlead_testing.exports import MODEL, PARENT, created, parent_life, stored_life

OPEN = (created(), admitted("msg_1"), claimed(), promoted("msg_1"))


def imported(*events: SessionEvent, through: int | None = None) -> Session:
    mark, session = ImportMark(through or len(events)), Session(id="ses_1")
    for event in recorded(*events):
        session = evolve(session, event._replace(imported=mark))
    return session


def test_work_that_was_open_at_the_origin_wakes_nobody() -> None:
    """H-14: a replay never wakes execution."""
    there, here = given(*OPEN), imported(*OPEN)

    assert is_moving(there)
    assert not is_moving(here)
    assert not wake_has_work(here)
    assert (here.inbox, here.transcript, here.turn) == (there.inbox, there.transcript, there.turn)


def test_the_runner_of_the_origin_does_not_own_the_session_here() -> None:
    assert imported(*OPEN).execution.owner is None
    assert is_at_rest(imported(*OPEN))


@pytest.mark.parametrize("event", [admitted("msg_2"), ResumeRequested()])
def test_who_asks_here_lets_the_session_go_on(event: SessionEvent) -> None:
    """The turn that was open goes on as after the death of its runner."""
    session = then(imported(*OPEN), event)

    assert is_moving(session)
    assert session.execution.owed


def test_a_resume_here_is_written_although_work_was_requested_there() -> None:
    session = imported(*OPEN)

    assert resume(session) == (ResumeRequested(),)
    assert is_moving(then(session, ResumeRequested()))
    assert compact(imported(*OPEN, CompactionRequested())) == (CompactionRequested(),)


def test_a_change_that_asks_for_nothing_begins_nothing() -> None:
    session = then(imported(*OPEN), ModelSwitched(message_id="msg_2", model=MODEL))

    assert not is_moving(session)


def test_a_session_in_the_middle_of_its_import_is_incomplete() -> None:
    session = imported(*OPEN, through=9)

    assert session.is_incomplete
    assert not is_moving(session)
    assert explain(session).code == "import"
    assert not imported(*OPEN).is_incomplete
    assert explain(imported(*OPEN)).code == "imported"
    assert not given(*OPEN).is_incomplete


def test_an_import_of_a_session_at_rest_is_idle() -> None:
    rested = imported(*OPEN[:1])

    assert explain(rested).state == "idle"


def test_an_interrupt_that_was_resumed_at_the_origin_is_folded_as_there() -> None:
    """Only the end of an import drops the owner: the events before fold as they did there."""
    events = (*OPEN, ExecutionReleased(generation=1, reason="handover"))

    assert imported(*events).execution.owed == given(*events).execution.owed


def test_an_ask_of_an_imported_session_does_not_expire() -> None:
    """Nobody here asked, so nothing here declines."""
    session = Session(id=PARENT)
    mark = ImportMark(15)
    for event in decode_stored(stored_life(parent_life(), PARENT)[:15]):
        session = evolve(session, event._replace(imported=mark))

    assert session.asks.permissions
    assert expire_ask(session, "per_1", before=10**15) == ()


def test_the_bytes_of_an_import_keep_callers_and_mark() -> None:
    events = tuple(
        event._replace(by=by, imported=ImportMark(4, publish=True))
        for event, by in zip(recorded(*OPEN), ("key:ann", "key:ann", None, None), strict=True)
    )
    commit = Commit("cmt_1", events)

    payload = encode(commit)

    assert payload.startswith(b'{"id":"cmt_1","level":2,"imported":{"through":4,"publish":true}')
    assert decode(payload) == commit
    assert all(isinstance(event, Recorded) for event in decode(payload).events)
