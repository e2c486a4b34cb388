"""What a path holds now, in the terms of a tree: so that nothing is overwritten that nobody has seen."""

import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from fairlead_tools.file_snapshots.trees import TreeChange
from fairlead_tools.files.path import open_directory, printable

Entry: TypeAlias = tuple[bytes, str]
"""The mode and the name of the content, as in a tree."""

ABSENT: Final[Entry] = (b"000000", "0" * 40)
OTHER: Final[Entry] = (b"040000", "")
"""Something that is no file: it equals no entry of a file."""
NAMED_MAX: Final = 5


def old_entry(change: TreeChange) -> Entry:
    return change.old_mode, change.old_name


def new_entry(change: TreeChange) -> Entry:
    return change.new_mode, change.new_name


def entry_now(directory: Path, path: bytes) -> Entry:
    """What the path holds. A path behind a link or behind a file holds nothing of this directory."""
    inner = Path(os.fsdecode(path))
    try:
        with open_directory(directory / inner.parent) as above:
            status = os.stat(inner.name, dir_fd=above, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                target = os.fsencode(os.readlink(inner.name, dir_fd=above))
                return b"120000", _name(target)
            if not stat.S_ISREG(status.st_mode):
                return OTHER
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(inner.name, flags, dir_fd=above), "rb") as file:
                mode = b"100755" if status.st_mode & stat.S_IXUSR else b"100644"
                return mode, _name(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError:
        return OTHER


def name_paths(changes: Sequence[TreeChange]) -> str:
    """The first paths, for people."""
    names = [repr(printable(os.fsdecode(change.path))) for change in changes[:NAMED_MAX]]
    more = len(changes) - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _name(content: bytes) -> str:
    head = b"blob %d\0" % len(content)
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()
