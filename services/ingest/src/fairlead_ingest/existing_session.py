"""Refuses a session that commands cannot reach: one that does not exist, or is stored in a file."""

from fairlead_schema.errors import SessionIsStored, SessionNotFound
from fairlead_session.state.session import Session


def check_exists(session: Session) -> Session:
    """The session itself. Raises SessionNotFound, SessionIsStored."""
    check_in_log(session)
    if session.profile is None:
        raise SessionNotFound(session.id)
    return session


def check_in_log(session: Session) -> None:
    """Raise SessionIsStored for a session in a file, also while its restore is not complete."""
    if session.stored is not None:
        raise SessionIsStored(session.id, session.stored.file.name)
