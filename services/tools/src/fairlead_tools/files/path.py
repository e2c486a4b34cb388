"""Resolves paths: into the location once links are followed, or outside with an approval.

A path is resolved before a person is asked and again when the call runs. The file is then opened
from the root of the file system downwards, name by name and never through a link. So a link that
was put in place in between is refused, not followed.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import (
    EACCES,
    EEXIST,
    EINVAL,
    EISDIR,
    ELOOP,
    ENAMETOOLONG,
    ENOENT,
    ENOTDIR,
    ENXIO,
    EPERM,
    EROFS,
)
from pathlib import Path
from typing import Final

from fairlead_session.people.permission import Need
from fairlead_session.people.wildcard import has_wildcard
from fairlead_tools.files.private import PRIVATE

EXTERNAL: Final = "external_directory"
LINK_TRIES_MAX: Final = 10

# A directory on the way needs no read permission.
_PASS: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# Errors that a path from a model may cause; every other error is a defect of the machine.
_EXPECTED: Final = frozenset(
    {EACCES, EEXIST, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ENXIO, EPERM, EROFS}
)


class PathRefused(Exception):
    """A path that leads where the call may not go, or that is not a path."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads now: one canonical path without links."""

    path: Path
    root: Path | None
    """The location, if the place is inside it."""
    boundary: Path
    """The nearest existing directory: the place itself or above it."""
    linked: bool
    """Whether the path goes through links."""

    @property
    def resource(self) -> str:
        """The name in permissions: relative inside the location, absolute outside."""
        if self.root is None:
            return printable(self.path)
        return printable(self.path.relative_to(self.root))

    @property
    def target(self) -> str:
        return printable(self.path)


def printable(path: Path | str) -> str:
    """The path as valid text, whatever bytes its names have."""
    return os.fsencode(path).decode(errors="replace")


def is_path_error(error: OSError) -> bool:
    """Whether an error is about the requested path and not about the machine."""
    return error.errno in _EXPECTED


def _follow_links(path: str) -> Path:
    """Follow every link. A link that is replaced meanwhile is read again, a few times."""
    for _ in range(LINK_TRIES_MAX):
        try:
            return Path(os.path.realpath(path))
        except OSError as error:
            if error.errno != EINVAL:
                raise
    raise PathRefused(f"the path keeps changing: {path!r}")


def resolve(directory: str, path: str, checked: str | None = None) -> Place:
    """Resolve a path from a location. Raises PathRefused, or OSError if the location is missing.

    The location must still lead to the directory that was checked, if one was.
    """
    root = Path(os.path.realpath(directory, strict=True))
    if checked is not None and str(root) != checked:
        raise PathRefused("the location leads elsewhere than when it was checked")
    try:
        inner = _inner(directory, root, path)
        lexical = _normal(path) if inner is None else os.path.join(root, inner)  # noqa: PTH118
        canonical = _follow_links(lexical)
        boundary = _boundary(canonical)
    except ValueError as error:
        raise PathRefused(f"not a path: {path!r}") from error
    if PRIVATE.is_hidden(canonical):
        raise PathRefused(f"private to the tools service: {path!r}")
    inside = canonical.is_relative_to(root)
    if inner is not None and not inside:
        raise PathRefused(f"a link leads out of the location: {path!r}")
    linked = str(canonical) != lexical
    return Place(canonical, root if inside else None, boundary, linked)


def external_needs(*places: Place) -> tuple[Need, ...]:
    """The permissions for places outside the location, each directory once."""
    patterns = dict.fromkeys(_pattern(place.boundary) for place in places if place.root is None)
    return tuple(Need(EXTERNAL, (pattern,), approval_patterns(pattern)) for pattern in patterns)


def check_permitted(place: Place, action: str | None, permitted: tuple[Need, ...] | None) -> None:
    """Check that a place is still the permitted one. Raises PathRefused.

    Without a stored permission an outside path must not go through links, so that the person who
    was asked saw where it leads.
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
    """Open a canonical directory, and make it if asked. No link is followed on the way."""
    descriptor = os.open("/", _PASS)
    try:
        for part in directory.parts[1:]:
            child = _open_child(descriptor, part, make=make)
            os.close(descriptor)
            descriptor = child
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_place(place: Place) -> Iterator[tuple[int, os.stat_result]]:
    """Open a file or directory for reading. Other kinds are refused, because they might block."""
    with open_directory(place.path.parent) as parent:
        name = place.path.name or "/"
        _check_kind(os.stat(name, dir_fd=parent, follow_symlinks=False))
        descriptor = os.open(name, READ, dir_fd=parent)
    try:
        # Checked again: the file may have been replaced between the check and the opening.
        yield descriptor, _check_kind(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _check_kind(status: os.stat_result) -> os.stat_result:
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise PathRefused("neither a file nor a directory")
    return status


def _open_child(parent: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _PASS, dir_fd=parent)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    return os.open(name, _PASS, dir_fd=parent)


def _inner(directory: str, root: Path, path: str) -> str | None:
    """The path relative to the location; None for an absolute path outside it."""
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
    """The path without `.`, `..` and repeated slashes, also at the start."""
    return "/" + os.path.normpath(path).lstrip("/")


def _boundary(canonical: Path) -> Path:
    """The nearest existing directory. A file on the way is an error."""
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


def approval_patterns(pattern: str) -> tuple[str, ...]:
    """The patterns of an approval for always; none if a name before the last star holds wildcards."""
    return () if has_wildcard(pattern.removesuffix("*")) else (pattern,)


def _covers(need: Need, path: Path) -> bool:
    return need.action == EXTERNAL and any(
        path.is_relative_to(resource.removesuffix("/*") or "/") for resource in need.resources
    )
