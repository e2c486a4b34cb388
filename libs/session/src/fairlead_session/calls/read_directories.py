"""Where a session has read: in the log, so that nested instructions are found again by replay."""

import posixpath
from collections.abc import Mapping
from typing import Any, Final

from fairlead_schema.context import READ_DIRECTORIES_MAX
from fairlead_schema.tools.content import MANAGED_PREFIX
from fairlead_session.frozen import replace
from fairlead_session.state import Session, UnsettledCall

READ: Final = "read"
DIRECTORY: Final = "directory-page"
"""What the tool calls its answer for a directory."""


def touch(session: Session, call: UnsettledCall, output: Mapping[str, Any]) -> Session:
    """Note the directory of a file that was read, or that was listed itself.

    Beyond the limit the first ones stay. Dropping an old one instead would revoke instructions that
    the model still works by. A managed output lies in no directory.
    """
    path = call.input.get("path")
    if call.tool != READ or not isinstance(path, str) or session.profile is None:
        return session
    if path.startswith(MANAGED_PREFIX):
        return session
    place = posixpath.normpath(posixpath.join(session.profile.location.directory, path))
    directory = place if output.get("type") == DIRECTORY else posixpath.dirname(place)
    if directory in session.touched or len(session.touched) >= READ_DIRECTORIES_MAX:
        return session
    return replace(session, touched=(*session.touched, directory))
