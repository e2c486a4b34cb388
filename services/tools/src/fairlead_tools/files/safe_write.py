"""Changes to files: each is whole or absent, changes of one file are serial, links are not followed.

New bytes are written beside the old ones, synced and renamed over them. A writer holds a lock on the
old file, which excludes every other worker on the machine. The rename gives the name to a new file,
so a writer that waited for the lock opens the name again.
"""

import asyncio
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EMLINK, ENOENT, ENOTSUP, EPERM
from typing import Final, NamedTuple, ParamSpec, TypeVar

from fairlead_tools.files.draft import NEW, link_draft, name_draft, write_draft
from fairlead_tools.files.path import PathRefused, Place, open_directory

BOM: Final = b"\xef\xbb\xbf"
CHUNK: Final = 1 << 20
LOCK_S: Final = 5.0
CHANGE_BYTES_MAX: Final = 32 << 20
POLL_S: Final = 0.005

_LOCKED: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

P = ParamSpec("P")
T = TypeVar("T")


class FileChanged(Exception):
    """The file has changed since the change was planned."""


class FileTooLarge(Exception):
    """The file is too large to be changed."""


class FileLocked(Exception):
    """Another writer has locked the file for too long."""


async def run_to_end(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread. A cancellation waits until the work is done."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


class WrittenFile(NamedTuple):
    """A file that was written: whether it existed, and what it held, unless that was too much."""

    existed: bool
    before: bytes | None


def write(place: Place, text: bytes, *, lock_s: float = LOCK_S) -> WrittenFile:
    """Create or replace a file. Waits `lock_s` for its lock.

    A byte order mark of the file stays, and there is never more than one. Raises FileLocked.
    """
    bare = text
    while bare.startswith(BOM):
        bare = bare[len(BOM) :]
    with _open_parent(place, make=True) as (parent, name):
        while True:
            with _lock_name(parent, name, lock_s) as file:
                if file is not None:
                    before = _read_small(file)
                    mark = BOM if os.pread(file, len(BOM), 0) == BOM or bare != text else b""
                    _swap(parent, name, mark + bare, os.fstat(file))
                    return WrittenFile(existed=True, before=before)
            with suppress(FileExistsError):
                _create(parent, name, BOM + bare if bare != text else bare, None)
                return WrittenFile(existed=False, before=None)


def create(place: Place, text: bytes, *, like: os.stat_result | None = None) -> None:
    """Create a new file. Raises FileExistsError."""
    with _open_parent(place, make=True) as (parent, name):
        _create(parent, name, text, like)


def change(place: Place, make: Callable[[bytes], bytes]) -> tuple[bytes, bytes]:
    """Replace the bytes of a file by `make` of them. Returns the bytes before and after.

    A lock keeps other workers out; a writer without a lock is noticed. Raises FileChanged,
    FileTooLarge.
    """
    with _open_parent(place) as (parent, name), _lock_name(parent, name) as file:
        if file is None:
            raise FileNotFoundError(ENOENT, "no such file", name)
        if os.fstat(file).st_size > CHANGE_BYTES_MAX:
            raise FileTooLarge
        before = os.pread(file, CHANGE_BYTES_MAX, 0)
        after = make(before)
        if not _same(parent, name, file) or not _holds(file, before):
            raise FileChanged
        _swap(parent, name, after, os.fstat(file))
        return before, after


def replace(place: Place, text: bytes, *, expected: bytes) -> None:
    """Replace a file that still holds the expected bytes. Raises FileChanged."""
    with _open_parent(place) as (parent, name), _lock_name(parent, name) as file:
        if file is None or not _holds(file, expected):
            raise FileChanged
        _swap(parent, name, text, os.fstat(file))


def remove(place: Place, *, expected: bytes | None = None) -> bool:
    """Remove a file that still holds the expected bytes. Returns whether it existed.

    Raises FileChanged.
    """
    try:
        with _open_parent(place) as (parent, name), _lock_name(parent, name) as file:
            if file is None:
                return False
            if expected is not None and not _holds(file, expected):
                raise FileChanged
            os.unlink(name, dir_fd=parent)
            _sync(parent)
            return True
    except FileNotFoundError:
        return False


@contextmanager
def _open_parent(place: Place, *, make: bool = False) -> Iterator[tuple[int, str]]:
    if not place.path.name:
        raise PathRefused("the root is no file")
    with open_directory(place.path.parent, make=make) as parent:
        yield parent, place.path.name


@contextmanager
def _lock_name(parent: int, name: str, lock_s: float = LOCK_S) -> Iterator[int | None]:
    """Open and lock the file of a name for the block; None if there is no file."""
    until = time.monotonic() + lock_s
    while True:
        try:
            file = os.open(name, _LOCKED, dir_fd=parent)
        except FileNotFoundError:
            yield None
            return
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise PathRefused("not a file")
            _lock(file, until)
            if _same(parent, name, file):
                yield file
                return
            if time.monotonic() > until:
                raise FileLocked
        finally:
            os.close(file)


def _lock(file: int, until: float) -> None:
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise FileLocked from error
            time.sleep(POLL_S)


def _same(parent: int, name: str, file: int) -> bool:
    try:
        now = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(now, os.fstat(file))


def _read_small(file: int) -> bytes | None:
    """The bytes of a file of which nobody minds a copy; None for a larger one."""
    size = os.fstat(file).st_size
    return os.pread(file, CHUNK, 0) if size <= CHUNK else None


def _holds(file: int, expected: bytes) -> bool:
    if os.fstat(file).st_size != len(expected):
        return False
    steps = range(0, len(expected) + 1, CHUNK)
    return all(os.pread(file, CHUNK, at) == expected[at : at + CHUNK] for at in steps)


def _create(parent: int, name: str, text: bytes, like: os.stat_result | None) -> None:
    with write_draft(parent, text, like) as draft:
        try:
            link_draft(parent, draft, name)
        except OSError as error:
            if error.errno not in {EPERM, ENOTSUP, EMLINK}:
                raise
            # This file system has no hard links: create the name, then rename the draft over it.
            os.close(os.open(name, NEW, 0o666, dir_fd=parent))
            os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
    _sync(parent)


def _swap(parent: int, name: str, text: bytes, like: os.stat_result) -> None:
    with write_draft(parent, text, like) as draft:
        draft_name = name_draft(parent, draft)
        try:
            os.rename(draft_name, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError:
            os.unlink(draft_name, dir_fd=parent)
            raise
    _sync(parent)


def _sync(parent: int) -> None:
    try:
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
    except PermissionError:
        return  # A directory without read permission cannot be synced.
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
