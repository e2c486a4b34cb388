"""The changes of a patch: all of them are planned before the first is applied."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from fairlead_tools.files import safe_write
from fairlead_tools.files.patch import Add, Delete, Hunk, LinesNotFound, Update, apply_chunks
from fairlead_tools.files.path import PathRefused, Place
from fairlead_tools.files.safe_write import BOM, FileTooLarge
from fairlead_tools.files.whole_file import read_content

Kind: TypeAlias = Literal["add", "update", "delete", "move"]


class PatchMismatch(Exception):
    """The patch does not fit a file. The message says which file and why."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file change: the bytes that it expects and the bytes that it writes."""

    kind: Kind
    place: Place
    before: bytes | None
    after: bytes | None
    to: Place | None = None
    like: os.stat_result | None = None

    @property
    def result(self) -> Place:
        return self.to or self.place


@dataclass(frozen=True, slots=True)
class _File:
    raw: bytes
    like: os.stat_result | None


class Overlay:
    """The files as the planned changes leave them, so that a patch may change a file twice."""

    def __init__(self) -> None:
        self._files: dict[Path, _File | None] = {}

    def plan(self, hunk: Hunk, places: Mapping[str, Place]) -> Change:
        """The change of one hunk. Raises PatchMismatch."""
        place = places[hunk.path]
        file = self._file(place)
        if isinstance(hunk, Add):
            if file is not None:
                raise PatchMismatch(f"{hunk.path} exists already")
            return self._record(Change("add", place, None, _encode(hunk.content)))
        if file is None:
            raise PatchMismatch(f"{hunk.path} does not exist")
        if isinstance(hunk, Delete):
            return self._record(Change("delete", place, file.raw, None, like=file.like))
        after = _update(hunk, file.raw)
        to = None if hunk.to is None else places[hunk.to]
        if to is None or to.path == place.path:
            return self._record(Change("update", place, file.raw, after, like=file.like))
        if self._file(to) is not None:
            raise PatchMismatch(f"{hunk.to} exists already")
        return self._record(Change("move", place, file.raw, after, to, file.like))

    def _file(self, place: Place) -> _File | None:
        if place.path not in self._files:
            self._files[place.path] = _read(place)
        return self._files[place.path]

    def _record(self, change: Change) -> Change:
        self._files[change.place.path] = None
        if change.after is not None:
            self._files[change.result.path] = _File(change.after, change.like)
        return change


def plan_changes(hunks: tuple[Hunk, ...], places: Mapping[str, Place]) -> tuple[Change, ...]:
    """The changes of a patch, in order. Nothing is written. Raises PatchMismatch."""
    overlay = Overlay()
    return tuple(overlay.plan(hunk, places) for hunk in hunks)


def apply_change(change: Change) -> None:
    """Apply one change, if its file has not changed. Raises FileChanged, FileLocked, OSError."""
    if change.before is None:
        assert change.after is not None, "an added file has content"
        safe_write.create(change.place, change.after)
    elif change.after is None:
        _remove(change.place, change.before)
    elif change.to is None:
        safe_write.replace(change.place, change.after, expected=change.before)
    else:
        # A crash between the two steps leaves both files, never neither.
        safe_write.create(change.to, change.after, like=change.like)
        _remove(change.place, change.before)


def visible_text(raw: bytes | None) -> str | None:
    """The bytes of a file as text for people."""
    return None if raw is None else raw.removeprefix(BOM).decode(errors="replace")


def _remove(place: Place, expected: bytes) -> None:
    if not safe_write.remove(place, expected=expected):
        raise safe_write.FileChanged


def _read(place: Place) -> _File | None:
    try:
        return _File(*read_content(place))
    except FileNotFoundError:
        return None
    except (PathRefused, OSError) as error:
        raise PatchMismatch(f"{place.resource} cannot be read") from error
    except FileTooLarge as error:
        raise PatchMismatch(f"{place.resource} is too large to patch") from error


def _update(hunk: Update, raw: bytes) -> bytes:
    mark = BOM if raw.startswith(BOM) else b""
    try:
        return mark + _encode(apply_chunks(raw.removeprefix(BOM).decode(), hunk.chunks))
    except UnicodeDecodeError as error:
        raise PatchMismatch(f"{hunk.path} is not text") from error
    except LinesNotFound as error:
        raise PatchMismatch(f"{hunk.path}: {error}") from error


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise PatchMismatch("the patch holds half a character") from error
