"""Folds reverts: requests, restores that began, and what is staged."""

from typing import Final

from fairlead_schema.events import (
    RevertBegun,
    RevertCleared,
    RevertCommitted,
    RevertFailed,
    RevertRequested,
    RevertStaged,
)
from fairlead_schema.record import Recorded
from fairlead_session.fold import Reducers
from fairlead_session.frozen import replace
from fairlead_session.state.revert import FailedRevert, FileTrees, Revert, RevertRequest
from fairlead_session.state.session import Session


def _request(session: Session, event: RevertRequested, recorded: Recorded) -> Revert:
    files = event.files is not False
    request = RevertRequest(
        recorded.seq, event.action, event.message_id, files, before=event.before is True
    )
    return replace(session.revert, requested=request, begun=None, failed=None)


def _begin(session: Session, event: RevertBegun, _recorded: Recorded) -> Revert:
    return replace(session.revert, begun=FileTrees(event.original, event.target))


def _fail(session: Session, event: RevertFailed, recorded: Recorded) -> Revert:
    request = session.revert.requested
    failed = FailedRevert(recorded.seq if request is None else request.seq, event.reason)
    return replace(session.revert, requested=None, begun=None, failed=failed)


def _stage(session: Session, _event: RevertStaged, recorded: Recorded) -> Revert:
    """A stage that changed no file keeps the trees of the stage before it."""
    revert = session.revert
    asked = recorded.seq if revert.requested is None else revert.requested.seq
    seq = asked if revert.staged_seq is None else revert.staged_seq
    return Revert(staged=revert.begun or revert.staged, staged_seq=seq)


def _end(_session: Session, _event: RevertCleared | RevertCommitted, _recorded: Recorded) -> Revert:
    return Revert()


REDUCERS: Final[Reducers[Revert]] = {
    RevertRequested: _request,
    RevertBegun: _begin,
    RevertFailed: _fail,
    RevertStaged: _stage,
    RevertCleared: _end,
    RevertCommitted: _end,
}
