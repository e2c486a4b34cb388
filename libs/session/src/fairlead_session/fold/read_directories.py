"""Folds the directories in which the session read files: their instructions apply."""

import posixpath
from typing import Final

from fairlead_schema.context import READ_DIRECTORIES_MAX
from fairlead_schema.events import SessionMoved, ToolSucceeded
from fairlead_schema.record import Recorded
from fairlead_schema.tools.content import MANAGED_PREFIX
from fairlead_session.fold import Reducers
from fairlead_session.fold.calls import find_call
from fairlead_session.state.session import Session

READ: Final = "read"
DIRECTORY: Final = "directory-page"
"""The type that the read tool gives to its answer for a directory."""


def _read(session: Session, event: ToolSucceeded, _recorded: Recorded) -> tuple[str, ...]:
    """Add the directory of a file that was read, or of a directory that was listed.

    Beyond the limit the first directories stay. Dropping an old one would revoke instructions
    that the model still follows.
    """
    directories, directory = session.read_directories, _directory(session, event)
    full = len(directories) >= READ_DIRECTORIES_MAX
    if directory is None or directory in directories or full:
        return directories
    return (*directories, directory)


def _move(_session: Session, _event: SessionMoved, _recorded: Recorded) -> tuple[str, ...]:
    return ()


def _directory(session: Session, event: ToolSucceeded) -> str | None:
    """The directory that the call read. A managed output lies in no directory."""
    call = find_call(session, event.assistant_message_id, event.call_id)
    if call is None or call.tool != READ or session.profile is None:
        return None
    path = call.input.get("path")
    if not isinstance(path, str) or path.startswith(MANAGED_PREFIX):
        return None
    place = posixpath.normpath(posixpath.join(session.profile.location.directory, path))
    return place if event.structured.get("type") == DIRECTORY else posixpath.dirname(place)


REDUCERS: Final[Reducers[tuple[str, ...]]] = {ToolSucceeded: _read, SessionMoved: _move}
