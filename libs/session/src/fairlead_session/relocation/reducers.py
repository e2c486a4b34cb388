"""Folds moves that take changes along."""

from typing import Final

from fairlead_schema.events import (
    MoveBegun,
    MoveEnded,
    MoveFailed,
    MoveRequested,
    SessionMoved,
)
from fairlead_schema.record import Recorded
from fairlead_session.fold import Reducers
from fairlead_session.frozen import replace
from fairlead_session.state.relocation import EndedMove, MoveRequest, Relocation, Transfer
from fairlead_session.state.session import Session


def _request(_session: Session, event: MoveRequested, recorded: Recorded) -> Relocation:
    return Relocation(requested=MoveRequest(recorded.seq, event.location))


def _begin(session: Session, event: MoveBegun, _recorded: Recorded) -> Relocation:
    if session.profile is None:
        return session.relocation
    transfer = Transfer(
        session.profile.location,
        event.before,
        event.target,
        event.changed,
        event.kept,
        event.subdirectory,
    )
    return replace(session.relocation, begun=transfer)


def _move(session: Session, _event: SessionMoved, _recorded: Recorded) -> Relocation:
    """A move without a request takes nothing along."""
    if session.relocation.requested is None:
        return session.relocation
    return replace(session.relocation, moved=True)


def _fail(session: Session, event: MoveFailed, recorded: Recorded) -> Relocation:
    return Relocation(ended=EndedMove(_request_seq(session, recorded), failed=event.reason))


def _end(session: Session, event: MoveEnded, recorded: Recorded) -> Relocation:
    return Relocation(
        ended=EndedMove(_request_seq(session, recorded), undiscarded=event.undiscarded)
    )


def _request_seq(session: Session, recorded: Recorded) -> int:
    request = session.relocation.requested
    return recorded.seq if request is None else request.seq


REDUCERS: Final[Reducers[Relocation]] = {
    MoveRequested: _request,
    MoveBegun: _begin,
    SessionMoved: _move,
    MoveFailed: _fail,
    MoveEnded: _end,
}
