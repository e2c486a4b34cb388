"""Moves a session at rest out of the log: its events are in a file, and a marker stays (ADR 0084)."""

from dataclasses import dataclass

from fairlead_schema.events import SessionStored
from fairlead_schema.ids import SessionId
from fairlead_schema.session_values.stored_file import StoredFile, StoredProfile
from fairlead_session.execution.commands import Events, is_at_rest
from fairlead_session.state.session import Session


@dataclass(frozen=True, slots=True)
class StoreRefused:
    """The session cannot leave the log now."""

    session_id: SessionId
    reason: str


def store(session: Session, file: StoredFile) -> Events | StoreRefused:
    """Mark a session as stored in a file, if it rests exactly where the file ends.

    The marker stands alone, because everything before it is erased.
    """
    reason = _find_obstacle(session, file)
    if reason is not None:
        return StoreRefused(session.id, reason)
    return (SessionStored(file=file, profile=_profile(session)),)


def _find_obstacle(session: Session, file: StoredFile) -> str | None:
    if session.is_incomplete:
        return "its import is not complete: run the import again to its end"
    if session.seq != file.seq:
        return f"it has {session.seq} events, and the file {file.seq}: export it again"
    if not is_at_rest(session):
        return "it works: interrupt it, or wait until it rests"
    if session.inbox.pending:
        return "it has pending input: resume it, or cancel the input"
    if session.asks.permissions or session.asks.questions:
        return "it waits for an answer of a person: reply, or interrupt it"
    if session.usage.children.uncounted:
        return "a sub-agent of it works: wait until it has answered"
    return None


def _profile(session: Session) -> StoredProfile:
    profile, usage = session.profile, session.usage
    assert profile is not None, "only an existing session is stored"
    return StoredProfile(
        title=profile.title,
        project_id=profile.project_id,
        location=profile.location,
        created=profile.created,
        updated=profile.updated,
        subpath=profile.subpath,
        pool=profile.pool,
        agent=profile.agent,
        model=profile.model,
        parent_id=profile.parent_id,
        archived=profile.archived,
        metadata=dict(profile.metadata) or None,
        created_by=profile.created_by,
        cost=usage.cost,
        tokens=usage.tokens,
    )
