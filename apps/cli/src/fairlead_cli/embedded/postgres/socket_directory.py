"""Chooses a directory for a socket: the kernel takes only short paths, and clients take no comma."""

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from fairlead_cli.embedded.private_files import DIRECTORY_MODE
from fairlead_cli.errors import StateUnusable

# The path of a socket has 108 bytes on Linux, the last one is NUL; macOS has four less.
PATH_BYTES_MAX: Final = 103


def choose_socket_directory(preferred: Path, socket_name: str, env: Mapping[str, str]) -> Path:
    """The preferred directory, or a short private one when its path does not fit.

    Raises StateUnusable.
    """
    if _fits(preferred, socket_name):
        return preferred
    digest = hashlib.sha256(os.fsencode(preferred)).hexdigest()[:16]
    for base in (env.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 - checked
        if not base:
            continue
        directory = Path(base) / f"fairlead-{os.geteuid()}-{digest}"
        if _fits(directory, socket_name) and _is_private(directory):
            return directory
    raise StateUnusable(
        f"the path {preferred} is too long for a socket or has a comma, and no private directory"
        " was found: choose a shorter path with --state"
    )


def remove_socket_directory(directory: Path, preferred: Path) -> None:
    """Remove a directory that was chosen in place of the preferred one."""
    if directory != preferred:
        with suppress(OSError):
            directory.rmdir()


def _fits(directory: Path, socket_name: str) -> bool:
    # The server and its clients read a comma as the end of one directory of several.
    short = len(os.fsencode(directory / socket_name)) <= PATH_BYTES_MAX
    return short and "," not in str(directory)


def _is_private(directory: Path) -> bool:
    """Create the directory if needed. Somebody else may have created it to catch connections."""
    try:
        with suppress(FileExistsError):
            directory.mkdir(mode=DIRECTORY_MODE)
        about = directory.lstat()
    except OSError:
        return False
    closed = stat.S_IMODE(about.st_mode) == DIRECTORY_MODE
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and closed
