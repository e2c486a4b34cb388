"""Changes to files: each whole or not at all, one after the other per file, never through a link.

New bytes are written beside the old ones, synced and renamed over them. Whoever changes a file
holds a lock on the file itself, which excludes every worker of the machine: the rename gives the
name to another file, so whoever waited looks again.
"""

import asyncio
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EMLINK, ENOENT, ENOTSUP, EPERM
from typing import Final, ParamSpec, TypeVar

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
    """The file is not what it was when the change was decided."""


class FileTooLarge(Exception):
    """More than anybody edits in one piece."""


class FileLocked(Exception):
    """Somebody else has held the file for too long."""


async def run_to_end(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do blocking work in a thread; a cancellation waits until it is done."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def write(place: Place, text: bytes) -> bool:
    """Give a file these bytes, whether it exists or not, and tell whether it did.

    A byte order mark that the file has stays, and there is never more than one.
    """
    bare = text
    while bare.startswith(BOM):
        bare = bare[len(BOM) :]
    with _open_parent(place, make=True) as (parent, name):
        while True:
            with _lock_name(parent, name) as file:
                if file is not None:
                    kept = BOM if os.pread(file, len(BOM), 0) == BOM or bare != text else b""
                    _swap(parent, name, kept + bare, os.fstat(file))
                    return True
            with suppress(FileExistsError):
                _create(parent, name, BOM + bare if bare != text else bare, None)
                return False


def create(place: Place, text: bytes, *, like: os.stat_result | None = None) -> None:
    """Make a file that does not exist. Raises FileExistsError."""
    with _open_parent(place, make=True) as (parent, name):
        _create(parent, name, text, like)


def change(place: Place, make: Callable[[bytes], bytes]) -> tuple[bytes, bytes]:
    """Make new bytes of what a file holds: what it held, and what it holds now.

    Nobody else who locks it comes in between; whoever does not is noticed. Raises Stale, TooLarge.
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
    """Change a file that still holds the expected bytes. Raises Stale."""
    with _open_parent(place) as (parent, name), _lock_name(parent, name) as file:
        if file is None or not _holds(file, expected):
            raise FileChanged
        _swap(parent, name, text, os.fstat(file))


def remove(place: Place, *, expected: bytes | None = None) -> bool:
    """Remove a file, if it still holds the expected bytes; tells whether it existed. Raises Stale."""
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
def _lock_name(parent: int, name: str) -> Iterator[int | None]:
    """Hold the file of a name alone; None if there is none."""
    until = time.monotonic() + LOCK_S
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
            # No hard links here: claim the name, then give it the bytes.
            os.close(os.open(name, NEW, 0o666, dir_fd=parent))
            os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
    _sync(parent)


def _swap(parent: int, name: str, text: bytes, like: os.stat_result) -> None:
    with write_draft(parent, text, like) as draft:
        named = name_draft(parent, draft)
        try:
            os.rename(named, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError:
            os.unlink(named, dir_fd=parent)
            raise
    _sync(parent)


def _sync(parent: int) -> None:
    try:
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
    except PermissionError:
        return  # Writable but not readable: the system syncs it when it likes.
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
