"""Text files of a location, read without trusting them: bounded, regular, contained, UTF-8."""

import os
import stat
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final, TypeAlias

from fairlead_schema.context import ObservedSource, UnavailableKind

KEPT_MAX: Final = 1024
# A file may change twice within one tick of its clock: what changed just now is read again.
SETTLED_NS: Final = 2_000_000_000

Signature: TypeAlias = tuple[int, int, int, int, int]


class Unreadable(Exception):
    """What should be there cannot be read now: with the kind of reason, and words for people.

    A source that will not be better by waiting says what a new session is told `instead`.
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
    """Reads text files; one that has not changed on disk is not read twice."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept: OrderedDict[str, _CachedText] = OrderedDict()
        self._lock = Lock()

    def read(self, path: Path) -> str:
        """The text of a file. Raises Unreadable."""
        try:
            return self._read(path)
        except OSError as error:
            reason = f"{printable_path(path)}: {error.strerror or type(error).__name__}"
            raise Unreadable("unreadable", reason) from error

    def _read(self, path: Path) -> str:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable("unreadable", f"{printable_path(path)} is no regular file")
        with self._lock:
            kept = self._kept.get(str(path))
        if kept is not None and kept.signature == _signature(found):
            return kept.text
        # Should a pipe take the file's place by now, opening it does not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise Unreadable("unreadable", f"{printable_path(path)} is no regular file")
            self._fits(path, found.st_size)
            raw = file.read(self._bytes_max + 1)
        self._fits(path, len(raw))
        text = decode_text(raw, printable_path(path))
        if time.time_ns() - found.st_mtime_ns > SETTLED_NS:
            self._keep(str(path), _CachedText(_signature(found), text))
        return text

    def _fits(self, path: Path, size: int) -> None:
        if size > self._bytes_max:
            reason = f"{printable_path(path)} has {size} bytes or more; at most {self._bytes_max} are read"
            raise Unreadable("too-large", reason)

    def _keep(self, path: str, kept: _CachedText) -> None:
        with self._lock:
            self._kept[path] = kept
            self._kept.move_to_end(path)
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)


def decode_text(raw: bytes, name: str) -> str:
    """Text out of bytes. Raises Unreadable for what is none."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("not-text", f"{name} is not UTF-8") from error
    if "\0" in text:
        raise Unreadable("not-text", f"{name} is binary")
    return text


def real_path(path: str | Path) -> Path:
    """Where a path leads, whether or not anything is there. Raises OSError for a loop."""
    return Path(os.path.realpath(path))


def resolve_file(path: Path) -> Path:
    """The file that a path leads to. Raises Unreadable."""
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
    """Whether something has this name, if only a broken link. Raises OSError if nobody can say."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def expand_home(path: str) -> Path:
    """A path as people write it; without a home directory `~` stays as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - it never raises


def printable_path(path: str | Path) -> str:
    """A path on one line, in characters that any log can hold."""
    text = os.fsencode(path).decode(errors="backslashreplace")
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _signature(found: os.stat_result) -> Signature:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
