"""The entries of one directory, in pages."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from fairlead_tools.files.pages import OutOfRange
from fairlead_tools.files.path import printable

ENTRIES_MAX: Final = 2_000

EntryKind: TypeAlias = Literal["directory", "file"]


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """Some entries of a directory. The first has the number `offset`."""

    entries: tuple[tuple[str, EntryKind], ...]
    offset: int
    next: int | None


def list_directory(
    descriptor: int, path: Path, offset: int = 1, limit: int = ENTRIES_MAX
) -> DirectoryListing:
    """The entries: directories first, then by name. Links that lead outside are left out."""
    with os.scandir(descriptor) as entries:
        listed = sorted(
            (kind != "directory", entry.name, kind)
            for entry in entries
            if (kind := _kind(entry, path)) is not None
        )
    if offset > 1 and offset > len(listed):
        raise OutOfRange
    end = offset - 1 + limit
    page = tuple(
        (printable(name) + ("/" if kind == "directory" else ""), kind)
        for _, name, kind in listed[offset - 1 : end]
    )
    return DirectoryListing(page, offset, end + 1 if end < len(listed) else None)


def _kind(entry: os.DirEntry[str], path: Path) -> EntryKind | None:
    try:
        if entry.is_symlink() and not _within(path / entry.name, path):
            return None
        return "directory" if entry.is_dir() else "file"
    except OSError:
        return None


def _within(link: Path, path: Path) -> bool:
    return Path(os.path.realpath(link, strict=True)).is_relative_to(path)
