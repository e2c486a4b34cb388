"""The matches of a search program, confirmed before they are shown.

Each file is read again without following links, so that a tree that changes during the search
shows nothing from outside.
"""

import base64
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_tools.files.path import READ, open_directory
from fairlead_tools.files.private import PRIVATE

PREVIEW_LENGTH_MAX: Final = 2_000
SUBMATCHES_MAX: Final = 100

_BINARY_SAMPLE: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Submatch:
    """The part of a line that matches, in bytes of the line."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MatchedLine:
    """A line that matches, cut to a preview."""

    path: Path
    number: int
    offset: int
    text: str
    submatches: tuple[Submatch, ...]


def is_file(path: Path) -> bool:
    """Whether a path is a regular file, reached without links."""
    try:
        with open_directory(path.parent) as parent:
            return stat.S_ISREG(os.stat(path.name, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return False


def is_private(directory: Path, path: Path) -> bool:
    """Whether a search below a directory must not show a path.

    A managed output is searched inside the private directory: there the tool chose the file itself.
    """
    return PRIVATE.is_hidden(path) and not PRIVATE.is_hidden(directory)


def confirm_match(
    directory: Path, record: bytes, accept: Callable[[str], bool]
) -> MatchedLine | None:
    """The line of a record, if the file still holds it; None otherwise."""
    parsed = json.loads(record)
    if parsed["type"] != "match":
        return None
    match = parsed["data"]
    name = os.fsdecode(_bytes(match["path"])).removeprefix("./")
    raw = _bytes(match["lines"])
    if not accept(name) or is_private(directory, directory / name):
        return None
    if not _holds(directory / name, match["absolute_offset"], raw):
        return None
    text = raw.removesuffix(b"\n").removesuffix(b"\r").decode(errors="replace")
    submatches = tuple(
        Submatch(
            _truncate(_bytes(part["match"]).decode(errors="replace")), part["start"], part["end"]
        )
        for part in match["submatches"][:SUBMATCHES_MAX]
    )
    path = directory / name
    return MatchedLine(
        path, match["line_number"], match["absolute_offset"], _truncate(text), submatches
    )


def _holds(path: Path, offset: int, raw: bytes) -> bool:
    try:
        with open_directory(path.parent) as parent:
            file = os.open(path.name, READ, dir_fd=parent)
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return False
        return b"\0" not in os.pread(file, _BINARY_SAMPLE, 0) and (
            os.pread(file, len(raw), offset) == raw
        )
    finally:
        os.close(file)


def _bytes(value: dict[str, str]) -> bytes:
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


def _truncate(text: str) -> str:
    return text[:PREVIEW_LENGTH_MAX]
