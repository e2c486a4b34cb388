"""A small file that is read again when it changes. A broken new version changes nothing."""

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final, Generic, NamedTuple, TypeVar

log = logging.getLogger(__name__)

CHECK_INTERVAL_S: Final = 1.0
MISS_INTERVAL_S: Final = 0.1
"""How often the disk is asked for what the content lacks: somebody may have written it just now."""
FILE_BYTES_MAX: Final = 1024 * 1024

Content = TypeVar("Content")


class FileUnusable(Exception):
    """A file cannot be read or does not fit its format. The text names the file and the reason."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class _Version(NamedTuple):
    """What tells two versions of a file apart without reading them."""

    device: int
    inode: int
    size: int
    modified_ns: int


class WatchedFile(Generic[Content]):
    """The parsed content of a file. `parse` raises ValueError for text that does not fit."""

    def __init__(
        self,
        path: Path,
        parse: Callable[[str], Content],
        *,
        on_change: Callable[[Content, Content], None] = lambda _old, _new: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Read the file. Raises FileUnusable, because there is no older version yet.

        `on_change` gets the old and the new content of a file that was read again.
        """
        self._path = path
        self._parse = parse
        self._on_change = on_change
        self._clock = clock
        self._version: _Version | None = _version_of(path)
        self._content = self._read()
        self._checked_at = clock()

    def current(self) -> Content:
        """The newest content that could be read. The disk is asked at most once a second."""
        return self._check(CHECK_INTERVAL_S)

    def after_miss(self) -> Content:
        """The same for a caller who misses something in it: asked at most ten times a second."""
        return self._check(MISS_INTERVAL_S)

    def _check(self, interval_s: float) -> Content:
        now = self._clock()
        if now - self._checked_at >= interval_s:
            self._checked_at = now
            self._read_if_changed()
        return self._content

    def _read_if_changed(self) -> None:
        old, known = self._content, self._version
        try:
            # A version that is broken or gone is reported once, not every second.
            self._version = None
            self._version = _version_of(self._path)
            if self._version == known:
                return
            self._content = self._read()
        except FileUnusable as error:
            if known is None and self._version is None:
                return
            log.error(  # noqa: TRY400 - the reason says enough, a trace says nothing more
                "changed file cannot be used: its old content stays in force",
                extra={"path": str(error.path), "reason": error.reason},
            )
        else:
            log.info("changed file read again", extra={"path": str(self._path)})
            self._on_change(old, self._content)

    def _read(self) -> Content:
        try:
            with self._path.open("rb") as file:
                raw = file.read(FILE_BYTES_MAX + 1)
            if len(raw) > FILE_BYTES_MAX:
                raise FileUnusable(self._path, f"larger than {FILE_BYTES_MAX} bytes")
            return self._parse(raw.decode())
        except OSError as error:
            raise FileUnusable(self._path, error.strerror or "cannot be read") from error
        except ValueError as error:
            raise FileUnusable(self._path, str(error)) from error


def _version_of(path: Path) -> _Version:
    try:
        status = os.stat(path)  # noqa: PTH116 - one system call, without a Path in between
    except OSError as error:
        raise FileUnusable(path, error.strerror or "cannot be read") from error
    if not stat.S_ISREG(status.st_mode):
        raise FileUnusable(path, "not a regular file")
    return _Version(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
