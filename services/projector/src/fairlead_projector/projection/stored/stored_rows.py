"""The rows of stored sessions: they stay while a file holds the log, and a restore makes them again. Pure."""

from fairlead_projector.projection.log_entries import DecodedEntry
from fairlead_projector.projection.rows import ProjectedSession, SessionRow
from fairlead_schema.events import SessionStored
from fairlead_schema.session_values.stored_file import StoredFile, StoredState
from fairlead_schema.subjects import Address


def find_marker(decoded: DecodedEntry) -> SessionStored | None:
    """The marker of a stored session, if the commit is one."""
    event = decoded.events[-1].event if decoded.events else None
    return event if isinstance(event, SessionStored) else None


def store_session(
    known: ProjectedSession | None, decoded: DecodedEntry, marker: SessionStored
) -> ProjectedSession:
    """The session whose log is in a file. Without whole rows, the marker has what lists and totals need.

    Rows may miss events that are erased: Postgres may fail after the log was erased.
    """
    entry, time, file = decoded.entry, decoded.events[-1].time, marker.file
    lacks: bool | None = None
    if known is not None and _is_noted(known.row, file):
        assert known.row.stored is not None, "the marker stands in the log twice"
        lacks = known.row.stored.lacks_messages
    elif known is None or known.row.broken is not None or known.row.seq != file.seq:
        known, lacks = ProjectedSession(_row_of_marker(entry.at, marker)), True
    row = known.row
    row.stored = StoredState(**dict(file), time=time, lacks_messages=lacks)
    # The log begins again, so that only the marker has bytes and the next seq is 1.
    row.seq, row.position, row.log_bytes = 0, entry.position, len(entry.payload)
    return known


def _is_noted(row: SessionRow, file: StoredFile) -> bool:
    """Whether the row has this marker already."""
    return (
        row.broken is None
        and row.stored is not None
        and row.seq == 0
        and row.stored.digest == file.digest
    )


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
