"""Where a session has read: in the log, so that nested instructions are found again by replay."""

import posixpath
from dataclasses import replace
from typing import Final

from fairlead_schema.context import TOUCHED_MAX
from fairlead_session.state import Call, Session

READ: Final = "read"


def touch(session: Session, call: Call) -> Session:
    """Note the directory of a file that was read. Beyond the limit the first ones stay.

    Dropping an old one instead would revoke instructions that the model still works by.
    """
    path = call.input.get("path")
    if call.tool != READ or not isinstance(path, str) or session.profile is None:
        return session
    directory = posixpath.dirname(
        posixpath.normpath(posixpath.join(session.profile.location.directory, path))
    )
    if directory in session.touched or len(session.touched) >= TOUCHED_MAX:
        return session
    return replace(session, touched=(*session.touched, directory))
