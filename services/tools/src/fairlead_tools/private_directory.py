"""The private directory of a worker: spools, file snapshots, and the temporary directory of each session.

Only the worker's user may enter it. Tools are kept out by their path guard and by the sandbox.
"""

import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead_schema.subjects import Address
from fairlead_service.config.configuration import ConfigError

# A session that ran no command for this long loses its temporary files.
SESSION_AGE_S: Final = 24 * 3600.0
_OTHERS: Final = 0o077


class PrivateDirectoryUnsafe(ConfigError):
    """The private directory cannot be made, or somebody else owns it. Raised at the start."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            "configuration",
            "tools.spool_dir",
            f"{path} {reason}: remove it, or name a directory of the worker's user",
        )


@dataclass(frozen=True, slots=True)
class PrivateDirectory:
    """The directories below one root that belongs to the worker's user alone."""

    root: Path
    used: set[Address] = field(default_factory=set)
    """The sessions whose directory this process used. Other stacks may use the same root."""

    @property
    def spools(self) -> Path:
        return self.root / "spools"

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    @property
    def snapshots(self) -> Path:
        return self.root / "snapshots"

    def session_directory(self, at: Address) -> Path:
        """The temporary directory of a session, made if it is missing. Commands keep files there."""
        directory = self.sessions / at.tenant / at.session_id
        make_private(directory.parent)
        make_private(directory)
        # The age counts from the last command.
        os.utime(directory)
        self.used.add(at)
        return directory

    def remove_session(self, at: Address) -> None:
        """Remove the temporary files of a session."""
        self.used.discard(at)
        remove_tree(self.sessions / at.tenant / at.session_id)

    def remove_old_sessions(self, age_s: float = SESSION_AGE_S) -> None:
        """Remove the temporary files of sessions that ran no command for so long."""
        limit = time.time() - age_s
        for directory in self.sessions.glob("*/*"):
            with suppress(OSError):
                if directory.lstat().st_mtime < limit:
                    remove_tree(directory)


def open_private_directory(configured: str | None) -> PrivateDirectory:
    """Make the private directory, or check the one that is there. Raises PrivateDirectoryUnsafe."""
    name = f"fairlead-tools-{os.getuid()}"
    root = Path(configured) if configured else Path(tempfile.gettempdir()) / name
    directory = PrivateDirectory(root.absolute())
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        for path in (directory.root, directory.spools, directory.sessions):
            make_private(path)
    except OSError as error:
        raise PrivateDirectoryUnsafe(root, f"cannot be made ({error.strerror})") from error
    return directory


def make_private(path: Path) -> None:
    """Make a directory that only its owner may enter. Raises PrivateDirectoryUnsafe."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise PrivateDirectoryUnsafe(path, "is not a directory")
    if status.st_uid != os.getuid():
        raise PrivateDirectoryUnsafe(path, "belongs to another user")
    if status.st_mode & _OTHERS:
        path.chmod(0o700)


def remove_tree(directory: Path) -> None:
    """Remove a directory, also one whose command took the rights of its own directories away."""
    for here, names, _files in os.walk(directory):
        for name in names:
            inner = Path(here) / name
            if not inner.is_symlink():
                with suppress(OSError):
                    inner.chmod(0o700)
    shutil.rmtree(directory, ignore_errors=True)
