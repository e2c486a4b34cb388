"""The refusals of an import: what is wrong with the events, or what stands against them."""

from fairlead_schema.errors import InvalidExport, ReplayConflict
from fairlead_schema.ids import SessionId
from fairlead_schema.record import NewerCommit, UnknownEvent
from fairlead_session.transfer.replay import ReplayRefused


def unreadable_events(session_id: SessionId, error: Exception) -> InvalidExport:
    """Events that this release cannot read."""
    kind = "Level" if isinstance(error, NewerCommit) else "Malformed"
    if isinstance(error, UnknownEvent):
        kind = "UnknownEvent"
    return InvalidExport(kind, str(error), session_id=session_id)


def replay_conflict(session_id: SessionId, refused: ReplayRefused) -> ReplayConflict:
    """Events that do not fit those of the session."""
    return ReplayConflict(refused.fault, refused.reason, session_id=session_id, seq=refused.seq)
