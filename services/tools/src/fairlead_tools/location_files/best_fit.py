"""Ranks the entries of a location by how well they fit some letters that a person typed."""

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Final

from fairlead_schema.commands.location_files import EntryType, FileEntry
from fairlead_tools.files.path import printable

NO_FIT: Final = 5


def entries_of(files: Iterable[PurePath], type_: EntryType | None) -> list[FileEntry]:
    """The files, and the directories that hold them, each once; only one type if it is given."""
    found: dict[str, EntryType] = {}
    for file in files:
        if type_ != "file":
            for above in file.parents:
                if above.name:
                    found[printable(str(above))] = "directory"
        if type_ != "directory":
            found[printable(str(file))] = "file"
    return [FileEntry(path=path, type=kind) for path, kind in found.items()]


def rank(entries: Sequence[FileEntry], query: str) -> list[FileEntry]:
    """The entries that fit, the best first; among equals the shorter path, then by name."""
    letters = query.casefold()
    scored = ((_misfit(entry.path.casefold(), letters), entry) for entry in entries)
    fitting = [
        (misfit, len(entry.path), entry.path, entry) for misfit, entry in scored if misfit < NO_FIT
    ]
    return [entry for *_key, entry in sorted(fitting, key=lambda item: item[:3])]


def _misfit(path: str, letters: str) -> int:
    """How badly a path fits: its name, the beginning of it, a part of it, the path, or the letters alone."""
    name = path.rpartition("/")[2]
    if name == letters:
        return 0
    if name.startswith(letters):
        return 1
    if letters in name:
        return 2
    if letters in path:
        return 3
    return NO_FIT - 1 if _is_subsequence(letters, path) else NO_FIT


def _is_subsequence(letters: str, path: str) -> bool:
    rest = iter(path)
    return all(letter in rest for letter in letters)
