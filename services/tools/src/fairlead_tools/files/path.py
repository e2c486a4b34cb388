"""Where a path leads: into the location once its links are followed, or outside by approval.

A path is resolved before anybody is asked, and again when the call runs. Whatever is then opened is
opened from the root of the file system downwards, one name at a time and never through a link: what
was exchanged in between is refused, not followed.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EACCES, EEXIST, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ENXIO, EPERM, EROFS
from pathlib import Path
from typing import Final

from fairlead_session.people.permission import Need

EXTERNAL: Final = "external_directory"

# A directory that is only passed through need not be readable.
_PASS: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# What may be wrong with a path that a model chose; anything else is a defect and stays one.
_EXPECTED: Final = frozenset(
    {EACCES, EEXIST, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ENXIO, EPERM, EROFS}
)


class PathRefused(Exception):
    """A path that leads where the call may not go, or that is none."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads now: one canonical path, without any link in it."""

    path: Path
    root: Path | None
    """The location, if the place is inside it."""
    boundary: Path
    """The nearest directory that exists: the place itself, or above it."""
    linked: bool
    """Whether the path as it was written goes through links."""

    @property
    def resource(self) -> str:
        """How permissions name it: from the location inside, absolute outside."""
        if self.root is None:
            return printable(self.path)
        return printable(self.path.relative_to(self.root))

    @property
    def target(self) -> str:
        return printable(self.path)


def printable(path: Path | str) -> str:
    """A path in characters that any log can hold, whatever bytes its names are."""
    return os.fsencode(path).decode(errors="replace")


def is_path_error(error: OSError) -> bool:
    """Whether an error is about the path that was asked for, and not about the machine."""
    return error.errno in _EXPECTED


def resolve(directory: str, path: str) -> Place:
    """Follow a path from a location. Raises PathRefused, or OSError without a location."""
    root = Path(os.path.realpath(directory, strict=True))
    try:
        inner = _inner(directory, root, path)
        lexical = _normal(path) if inner is None else os.path.join(root, inner)  # noqa: PTH118
        canonical = Path(os.path.realpath(lexical))
        boundary = _boundary(canonical)
    except ValueError as error:
        raise PathRefused(f"not a path: {path!r}") from error
    inside = canonical.is_relative_to(root)
    if inner is not None and not inside:
        raise PathRefused(f"a link leads out of the location: {path!r}")
    linked = str(canonical) != lexical
    return Place(canonical, root if inside else None, boundary, linked)


def external_needs(*places: Place) -> tuple[Need, ...]:
    """What must be permitted before anything outside the location is touched; each directory once."""
    patterns = dict.fromkeys(_pattern(one.boundary) for one in places if one.root is None)
    return tuple(Need(EXTERNAL, (one,), _approval_patterns(one)) for one in patterns)


def check_permitted(place: Place, action: str | None, permitted: tuple[Need, ...] | None) -> None:
    """Check that a place is still the one that was permitted. Raises PathRefused.

    Without a record of what was permitted, a path outside must say itself where it leads: then
    whoever was asked saw it.
    """
    if permitted is None:
        if place.root is None and place.linked:
            raise PathRefused("a path outside the location goes through a link")
        return
    if action is not None and not any(
        need.action == action and place.resource in need.resources for need in permitted
    ):
        raise PathRefused("leads elsewhere than when it was permitted")
    if place.root is None and not any(_covers(need, place.path) for need in permitted):
        raise PathRefused("lies outside what was permitted")


@contextmanager
def open_directory(directory: Path, *, make: bool = False) -> Iterator[int]:
    """Hold a canonical directory open, perhaps making it; no link is followed on the way."""
    held = os.open("/", _PASS)
    try:
        for part in directory.parts[1:]:
            below = _below(held, part, make=make)
            os.close(held)
            held = below
        yield held
    finally:
        os.close(held)


@contextmanager
def open_place(place: Place) -> Iterator[tuple[int, os.stat_result]]:
    """Hold a file or a directory open for reading. Anything else is refused: it might wait."""
    with open_directory(place.path.parent) as parent:
        name = place.path.name or "/"
        _plain(os.stat(name, dir_fd=parent, follow_symlinks=False))
        descriptor = os.open(name, READ, dir_fd=parent)
    try:
        # Once more: it may have been exchanged between the look and the opening.
        yield descriptor, _plain(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _plain(status: os.stat_result) -> os.stat_result:
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise PathRefused("neither a file nor a directory")
    return status


def _below(held: int, part: str, *, make: bool) -> int:
    try:
        return os.open(part, _PASS, dir_fd=held)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(part, dir_fd=held)
    return os.open(part, _PASS, dir_fd=held)


def _inner(directory: str, root: Path, path: str) -> str | None:
    """The path from the location, if that is where it is written to lead; else None."""
    if not path or "\0" in path:
        raise ValueError(path)
    if not os.path.isabs(path):  # noqa: PTH117
        inner = os.path.normpath(path)
        if inner == ".." or inner.startswith("../"):
            raise PathRefused(f"leaves the location: {path!r}")
        return inner
    lexical = Path(_normal(path))
    for base in (Path(_normal(directory)), root):
        if lexical.is_relative_to(base):
            return str(lexical.relative_to(base))
    return None


def _normal(path: str) -> str:
    """Without `.`, `..` and repeated slashes, two leading ones included."""
    return "/" + os.path.normpath(path).lstrip("/")


def _boundary(canonical: Path) -> Path:
    """The nearest existing directory. What stands in the way of one is an error."""
    for place in (canonical, *canonical.parents):
        try:
            mode = os.lstat(place).st_mode
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        except OSError as error:
            raise PathRefused(str(error)) from error
        if stat.S_ISDIR(mode):
            return place
        if place != canonical:
            raise PathRefused(f"not a directory: {place}")
    raise AssertionError("the root is a directory")


def _pattern(boundary: Path) -> str:
    return f"{printable(boundary).rstrip('/')}/*"


def _approval_patterns(pattern: str) -> tuple[str, ...]:
    """Approved for always, unless the directory's own name would match more than itself."""
    name = pattern.removesuffix("*")
    return () if "*" in name or "?" in name else (pattern,)


def _covers(need: Need, path: Path) -> bool:
    return need.action == EXTERNAL and any(
        path.is_relative_to(one.removesuffix("/*") or "/") for one in need.resources
    )
