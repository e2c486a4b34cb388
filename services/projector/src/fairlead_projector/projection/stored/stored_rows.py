"""The rows of stored sessions: they stay while a file holds the log, and a restore makes them again. Pure."""

from fairlead_eventlog.ports import LogEntry
from fairlead_projector.projection.log_entries import DecodedEntry
from fairlead_projector.projection.rows import ProjectedSession, SessionRow
from fairlead_schema.events import SessionStored
from fairlead_schema.session_values.stored_file import StoredState
from fairlead_schema.subjects import Address


def find_marker(decoded: DecodedEntry) -> SessionStored | None:
    """The marker of a stored session, if the commit is one."""
    event = decoded.events[-1].event if decoded.events else None
    return event if isinstance(event, SessionStored) else None


def store_session(
    known: ProjectedSession | None, decoded: DecodedEntry, marker: SessionStored
) -> ProjectedSession:
    """The session whose log is in a file. Without readable rows, the marker has what lists need."""
    entry, time = decoded.entry, decoded.events[-1].time
    if known is None or known.row.broken is not None:
        known = ProjectedSession(_row_of_marker(entry.at, marker))
    _mark_stored(known.row, entry, marker, time)
    return known


def begins_again(session: ProjectedSession | None, decoded: DecodedEntry) -> bool:
    """Whether an entry is the first one of a restore."""
    return (
        session is not None
        and session.row.stored is not None
        and session.row.seq == 0
        and bool(decoded.events)
        and decoded.events[0].seq == 1
    )


def note_restored(row: SessionRow) -> None:
    """The session is back in the log as soon as the last event of its file is."""
    if row.stored is not None and row.seq >= row.stored.seq:
        row.stored = None


def _mark_stored(row: SessionRow, entry: LogEntry, marker: SessionStored, time: int) -> None:
    """Note the file. The log begins again, so that only the marker has bytes and the next seq is 1."""
    lacks = None if row.seq == marker.file.seq else True
    if row.stored is not None and row.seq == 0 and row.stored.digest == marker.file.digest:
        lacks = row.stored.lacks_messages  # The marker stands in the log twice.
    row.stored = StoredState(**dict(marker.file), time=time, lacks_messages=lacks)
    row.seq, row.position, row.log_bytes = 0, entry.position, len(entry.payload)


def _row_of_marker(at: Address, marker: SessionStored) -> SessionRow:
    profile = marker.profile
    return SessionRow(
        tenant=at.tenant,
        session_id=at.session_id,
        seq=0,
        position=0,
        parent_id=profile.parent_id,
        project_id=profile.project_id,
        title=profile.title,
        directory=profile.location.directory,
        workspace_id=profile.location.workspace_id,
        subpath=profile.subpath,
        pool=profile.pool,
        agent=profile.agent,
        model=profile.model,
        cost=profile.cost,
        tokens=profile.tokens,
        created_at=profile.created,
        updated_at=profile.updated,
        archived_at=profile.archived,
        metadata=profile.metadata or {},
        created_by=profile.created_by,
    )
