"""Reads text files of a location without trusting them: bounded, regular, contained, UTF-8."""

import os
import stat
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final, TypeAlias

from fairlead_schema.context import ObservedSource, UnavailableKind
from fairlead_tools.context.watch.looked_paths import look_at, look_inside

KEPT_MAX: Final = 1024
# A file may change twice within one clock tick, so a file that changed just now is read again.
SETTLED_NS: Final = 2_000_000_000

Signature: TypeAlias = tuple[int, int, int, int, int]


class Unreadable(Exception):
    """A source cannot be read now. Carries the kind of reason and a sentence for people.

    When waiting does not help, `instead` is the observation for a new session.
    """

    def __init__(
        self, why: UnavailableKind, reason: str, instead: ObservedSource | None = None
    ) -> None:
        super().__init__(reason)
        self.why: UnavailableKind = why
        self.reason = reason
        self.instead = instead


@dataclass(frozen=True, slots=True)
class _CachedText:
    signature: Signature
    text: str


class TextFiles:
    """Reads text files. A file that has not changed on disk comes from a cache."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._cache: OrderedDict[str, _CachedText] = OrderedDict()
        self._lock = Lock()

    def read(self, path: Path) -> str:
        """The text of a file. Raises Unreadable."""
        try:
            return self._read(path)
        except OSError as error:
            reason = f"{printable_path(path)}: {error.strerror or type(error).__name__}"
            raise Unreadable("unreadable", reason) from error

    def _read(self, path: Path) -> str:
        look_inside(path)
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("unreadable", f"{printable_path(path)} is no regular file")
        with self._lock:
            cached = self._cache.get(str(path))
        if cached is not None and cached.signature == _signature(status):
            return cached.text
        # If a pipe has taken the file's place, opening it must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("unreadable", f"{printable_path(path)} is no regular file")
            self._check_size(path, status.st_size)
            raw = file.read(self._bytes_max + 1)
        self._check_size(path, len(raw))
        text = decode_text(raw, printable_path(path))
        if time.time_ns() - status.st_mtime_ns > SETTLED_NS:
            self._keep(str(path), _CachedText(_signature(status), text))
        return text

    def _check_size(self, path: Path, size: int) -> None:
        if size > self._bytes_max:
            reason = f"{printable_path(path)} has {size} bytes or more; at most {self._bytes_max} are read"
            raise Unreadable("too-large", reason)

    def _keep(self, path: str, cached: _CachedText) -> None:
        with self._lock:
            self._cache[path] = cached
            self._cache.move_to_end(path)
            if len(self._cache) > KEPT_MAX:
                self._cache.popitem(last=False)


def decode_text(raw: bytes, name: str) -> str:
    """The text of UTF-8 bytes. Raises Unreadable for anything else."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("not-text", f"{name} is not UTF-8") from error
    if "\0" in text:
        raise Unreadable("not-text", f"{name} is binary")
    return text


def real_path(path: str | Path) -> Path:
    """The path with all links followed, whether or not it exists. Raises OSError for a loop."""
    look_at(path)
    return Path(os.path.realpath(path))


def resolve_file(path: Path) -> Path:
    """The file that a path leads to. Raises Unreadable."""
    look_at(path)
    try:
        return Path(os.path.realpath(path, strict=True))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise Unreadable("unreadable", f"{printable_path(path)}: {reason}") from error


def resolve_inside(path: Path, root: Path) -> Path:
    """The file that a path leads to, which must be inside a root. Raises Unreadable."""
    target = resolve_file(path)
    if not target.is_relative_to(root):
        raise Unreadable("outside", f"{printable_path(path)} leads out of {printable_path(root)}")
    return target


def is_present(path: Path) -> bool:
    """Whether the path exists, even as a broken link. Raises OSError if that is unknown."""
    look_at(path)
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def expand_home(path: str) -> Path:
    """The path with `~` expanded, if there is a home directory."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - it never raises


def printable_path(path: str | Path) -> str:
    """The path in one line of printable characters."""
    text = os.fsencode(path).decode(errors="backslashreplace")
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _signature(status: os.stat_result) -> Signature:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
