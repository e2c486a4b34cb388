"""Folds the context epoch: its baseline, and the values that the model was last told."""

from typing import Final

from fairlead_schema.events import (
    ContextInitialised,
    ContextReplaced,
    ContextSnapshotAdvanced,
    RevertCommitted,
    SessionMoved,
)
from fairlead_schema.message import SystemMessage
from fairlead_schema.record import Recorded
from fairlead_session.fold import Reducers
from fairlead_session.fold.transcript import revert_seq
from fairlead_session.frozen import replace
from fairlead_session.state.session import Epoch, Session


def _initialise(_session: Session, event: ContextInitialised, recorded: Recorded) -> Epoch:
    return Epoch(recorded.seq, event.baseline, event.snapshot)


def _replace(session: Session, event: ContextReplaced, recorded: Recorded) -> Epoch:
    return Epoch(_start_of_replacement(session, recorded.seq), event.baseline, event.snapshot)


def _advance(session: Session, event: ContextSnapshotAdvanced, _recorded: Recorded) -> Epoch:
    assert session.epoch is not None, "a snapshot advances inside an epoch"
    return replace(session.epoch, snapshot=event.snapshot)


def _move(_session: Session, _event: SessionMoved, _recorded: Recorded) -> None:
    """Another location has another context."""


def _start_of_replacement(session: Session, seq: int) -> int:
    """A replaced baseline begins at the compaction before it, unless an update came between."""
    compacted = session.transcript.compacted_seq
    if compacted is None or (session.epoch and session.epoch.seq >= compacted):
        return seq
    updated = any(
        isinstance(line.message, SystemMessage) and line.seq > compacted
        for line in session.transcript.lines
    )
    return seq if updated else compacted


def _revert(session: Session, event: RevertCommitted, _recorded: Recorded) -> Epoch | None:
    """Drop the epoch if an update that its snapshot includes leaves with the transcript.

    The snapshot would then claim a value that the model no longer reads.
    """
    epoch, boundary = session.epoch, revert_seq(session, event)
    if epoch is None or boundary is None:
        return epoch
    lost = any(
        line.seq > max(boundary, epoch.seq) and isinstance(line.message, SystemMessage)
        for line in session.transcript.lines
    )
    return None if lost else epoch


REDUCERS: Final[Reducers[Epoch | None]] = {
    ContextInitialised: _initialise,
    ContextReplaced: _replace,
    ContextSnapshotAdvanced: _advance,
    SessionMoved: _move,
    RevertCommitted: _revert,
}
