"""Moves with changes: what the command writes, and what a session does until the move has ended."""

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
    InterruptRequested,
    MoveBegun,
    MoveEnded,
    MoveFailed,
    MoveRequested,
    ResumeRequested,
    RevertRequested,
    SessionMoved,
)
from fairlead_schema.location import LocationRef
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.next_move import Rest, ServeMove, Stop, TakeTurn, is_moving, next_move
from fairlead_session.relocation.commands import (
    MoveUnderWay,
    OtherPool,
    RevertOpen,
    SessionIsBusy,
    move,
)
from fairlead_session.revert.commands import RevertUnderWay, stage
from fairlead_session.state.relocation import EndedMove, Relocation, Transfer
from fairlead_session.state.session import Session

THERE = LocationRef(directory="/there")
REQUEST = MoveRequested(location=THERE)
BEGUN = MoveBegun(before="aaa", target="bbb", changed="ccc", kept="ddd", subdirectory="inner")
MOVED = SessionMoved(location=THERE, subdirectory="inner")
TURN = (admitted("msg_1"), claimed(), promoted("msg_1"), dispatched(), step_started())
RUNNING = (CREATED, INITIALISED, *TURN)
ANSWERED = (*RUNNING, step_ended(), released())


def ask(session: Session, directory: str = "/there") -> object:
    return move(session, LocationRef(directory=directory), with_changes=True)


def test_a_request_stops_what_runs_and_stands_in_the_log() -> None:
    """N-17, N-22: nothing moves yet, and a runner that is idle is asked."""
    assert ask(given(*ANSWERED)) == (REQUEST,)
    assert ask(given(*RUNNING)) == (InterruptRequested(), REQUEST)
    assert ask(given(*ANSWERED), "/work") == ()


def test_a_repeated_request_joins_and_another_one_waits() -> None:
    """N-17: until the changes have left the source, nobody moves or reverts the session."""
    for events in ((REQUEST,), (REQUEST, BEGUN), (REQUEST, BEGUN, MOVED)):
        session = given(*ANSWERED, *events)
        assert ask(session) == ()
        assert ask(session, "/elsewhere") == MoveUnderWay()
        assert move(session, LocationRef(directory="/elsewhere")) == MoveUnderWay()
        assert stage(session, "msg_1") == RevertUnderWay()


def test_a_revert_is_settled_before_a_move() -> None:
    """N-17: the trees of a revert belong to the old location."""
    reverting = given(*ANSWERED, RevertRequested(action="stage", message_id="msg_1"))
    assert ask(reverting) == RevertOpen()


def test_a_session_serves_the_request_before_other_work() -> None:
    """N-17: what ran is stopped, then the changes move, then input is promoted at the destination."""
    asked = given(*RUNNING, InterruptRequested(), REQUEST)
    assert next_move(asked) == Stop()
    waiting = given(*ANSWERED, REQUEST, admitted("msg_2"))
    assert is_moving(waiting)
    assert next_move(waiting) == ServeMove()
    begun = then(waiting, claimed(2), BEGUN)
    assert next_move(begun) == ServeMove()
    moved = then(begun, MOVED)
    assert next_move(moved) == ServeMove()
    ended = then(moved, MoveEnded())
    assert isinstance(next_move(then(ended, INITIALISED)), TakeTurn)


def test_the_state_keeps_the_source_until_its_changes_are_gone() -> None:
    """N-17, N-20: after the move the log still knows where the changes were."""
    begun = given(*ANSWERED, REQUEST, claimed(2), BEGUN)
    source = LocationRef(directory="/work")
    transfer = Transfer(source, "aaa", "bbb", "ccc", "ddd", "inner")
    assert begun.profile is not None
    assert (begun.relocation.begun, begun.profile.location) == (transfer, source)
    moved = then(begun, MOVED)
    assert moved.profile is not None
    assert (moved.relocation.begun, moved.profile.location) == (transfer, THERE)
    assert moved.profile.subpath == "inner"
    assert not is_at_rest(moved)


@pytest.mark.parametrize(
    ("events", "ended"),
    [
        ((BEGUN, MOVED, MoveEnded()), {}),
        ((BEGUN, MOVED, MoveEnded(undiscarded="busy")), {"undiscarded": "busy"}),
        ((MOVED, MoveEnded()), {}),
        ((MoveFailed(reason="no git"),), {"failed": "no git"}),
        ((BEGUN, MoveFailed(reason="conflict")), {"failed": "conflict"}),
    ],
)
def test_every_end_is_remembered_with_its_request(
    events: tuple[MoveBegun, ...], ended: dict[str, str]
) -> None:
    """N-20: whoever waits for the request learns how it ended."""
    asked = given(*ANSWERED, REQUEST)

    session = then(asked, claimed(2), *events, released(generation=2))

    assert session.relocation == Relocation(ended=EndedMove(asked.seq, **ended))
    assert next_move(session) == Rest("idle")
    assert is_at_rest(session)


def test_a_plain_move_takes_nothing_along() -> None:
    """N-18: without a request the events of a transfer do not appear."""
    session = given(*ANSWERED, SessionMoved(location=THERE))

    assert session.relocation == Relocation()
    assert not is_moving(session)


HERE = LocationRef(directory="/work")
TO_GPU = SessionMoved(location=HERE, pool="gpu")


def test_a_move_to_another_pool_clears_the_epoch() -> None:
    """A pool has disks of its own, so that its workers give a complete baseline first."""
    session = given(*ANSWERED)

    assert move(session, HERE, pool="gpu") == (TO_GPU,)
    after = then(session, TO_GPU)
    assert after.profile is not None
    assert after.profile.pool == "gpu"
    assert after.epoch is None
    assert move(after, HERE, pool="gpu") == ()
    assert move(after, HERE) == (SessionMoved(location=HERE),)


def test_a_move_to_another_pool_stops_what_runs_unless_it_waits_for_a_rest() -> None:
    running = given(*RUNNING)

    assert move(running, HERE, pool="gpu") == (InterruptRequested(), TO_GPU)
    assert move(running, HERE, pool="gpu", at_rest=True) == SessionIsBusy()
    assert move(given(*ANSWERED), HERE, pool="gpu", at_rest=True) == (TO_GPU,)


def test_a_move_that_resumes_lets_only_stopped_work_go_on() -> None:
    """An operator empties a pool: what ran there goes on elsewhere, and nobody else begins to work."""
    running = given(*RUNNING)
    stopped = then(running, InterruptRequested())

    assert move(running, HERE, pool="gpu", resume=True) == (
        InterruptRequested(),
        TO_GPU,
        ResumeRequested(),
    )
    assert move(given(*ANSWERED), HERE, pool="gpu", resume=True) == (TO_GPU,)
    assert move(stopped, HERE, pool="gpu", resume=True) == (TO_GPU,), "a person stopped it before"
    moved = then(running, InterruptRequested(), TO_GPU, ResumeRequested())
    assert next_move(moved) == Stop()
    assert is_moving(moved)


def test_changes_do_not_come_along_to_another_pool() -> None:
    assert move(given(*ANSWERED), THERE, pool="gpu", with_changes=True) == OtherPool()


def test_a_move_without_a_pool_leads_to_the_default_pool() -> None:
    assert move(given(*ANSWERED, TO_GPU), THERE) == (SessionMoved(location=THERE),)
