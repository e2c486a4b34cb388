"""The directories of this process that no tool may touch, whatever a rule or a person permits.

They hold the output of other sessions, and texts that become instructions for models. A directory is
forbidden for the whole process and not for a call, so no tool can forget to ask.
"""

from pathlib import Path
from typing import Final


class PrivateDirectories:
    """Directories that tools may not touch, and directories that tools may only read."""

    def __init__(self) -> None:
        self._hidden: set[Path] = set()
        self._read_only: set[Path] = set()

    @property
    def hidden(self) -> tuple[Path, ...]:
        """The directories that no tool may touch, by path."""
        return tuple(sorted(self._hidden))

    def hide(self, *directories: Path) -> None:
        """Keep every tool out of these directories."""
        self._hidden.update(directory.resolve() for directory in directories)

    def forbid_changes(self, *directories: Path) -> None:
        """Let tools read in these directories, and change nothing."""
        self._read_only.update(directory.resolve() for directory in directories)

    def is_hidden(self, path: Path) -> bool:
        """Whether no tool may touch a path without links."""
        return any(path.is_relative_to(directory) for directory in self._hidden)

    def is_read_only(self, path: Path) -> bool:
        """Whether no tool may change a path without links."""
        read_only = self._hidden | self._read_only
        return any(path.is_relative_to(directory) for directory in read_only)


PRIVATE: Final = PrivateDirectories()
