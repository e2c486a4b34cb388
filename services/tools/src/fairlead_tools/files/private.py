"""The directories of this process that no tool may touch, whatever a rule or a person permits.

They hold the output of other sessions, and texts that become instructions for models. A directory is
forbidden for the whole process and not for a call, so no tool can forget to ask.
"""

from pathlib import Path
from typing import Final, Literal, TypeAlias

Access: TypeAlias = Literal["none", "read"]


class PrivateDirectories:
    """Directories that tools may not touch or only read. The innermost directory of a path counts."""

    def __init__(self) -> None:
        self._access: dict[Path, Access] = {}

    @property
    def hidden(self) -> tuple[Path, ...]:
        """The directories that no tool may touch, by path."""
        return tuple(sorted(path for path, access in self._access.items() if access == "none"))

    def hide(self, *directories: Path) -> None:
        """Keep every tool out of these directories."""
        self._access.update({directory.resolve(): "none" for directory in directories})

    def forbid_changes(self, *directories: Path) -> None:
        """Let tools read in these directories, and change nothing."""
        self._access.update({directory.resolve(): "read" for directory in directories})

    def is_hidden(self, path: Path) -> bool:
        """Whether no tool may touch a path without links."""
        return self._innermost(path) == "none"

    def is_read_only(self, path: Path) -> bool:
        """Whether no tool may change a path without links."""
        return self._innermost(path) is not None

    def _innermost(self, path: Path) -> Access | None:
        if not self._access:
            return None
        parents = (self._access.get(place) for place in (path, *path.parents))
        return next((access for access in parents if access is not None), None)


PRIVATE: Final = PrivateDirectories()
