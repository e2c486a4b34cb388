"""Writes files of a tree into a location: listed paths only, never through a link, each whole or as before."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from errno import EISDIR, ELOOP, ENOENT, ENOTDIR
from pathlib import Path
from typing import Final

from fairlead_tools.file_snapshots.git import Git, GitFailed
from fairlead_tools.file_snapshots.paths import is_private, is_safe
from fairlead_tools.file_snapshots.trees import TreeChange
from fairlead_tools.files.draft import name_draft, write_draft
from fairlead_tools.files.path import open_directory, printable

_LINK: Final = b"120000"
_PROGRAM: Final = b"100755"
_FILES: Final = frozenset({b"100644", _PROGRAM, _LINK})
# The path leads through something that is no directory, or a directory has taken its place.
_NOTHING_THERE: Final = frozenset({ENOENT, ENOTDIR, ELOOP, EISDIR})


class RestoreFailed(Exception):
    """A file could not be changed. The other files are as they were before, as far as possible."""


def restore(git: Git, directory: Path, changes: Sequence[TreeChange]) -> None:
    """Change files to the new side of each change. If one cannot change, all go back.

    To do it again changes nothing, so a restore that died half-way is simply repeated. Raises
    RestoreFailed, and GitFailed before any file has changed.
    """
    _check(directory, changes)
    blobs = _read_blobs(git, changes)
    try:
        _apply(directory, changes, blobs)
    except OSError as error:
        back = [change.reverse() for change in changes]
        reason = f"{printable(str(error.filename or directory))}: {error.strerror or error}"
        try:
            _apply(directory, back, _read_blobs(git, back))
        except OSError as second:
            text = f"{reason}; and some files stay changed: {second.strerror or second}"
            raise RestoreFailed(text) from second
        raise RestoreFailed(reason) from error


def _check(directory: Path, changes: Sequence[TreeChange]) -> None:
    """Refuse paths that leave the location. Raises RestoreFailed before any file has changed."""
    for change in changes:
        if not is_safe(change.path) or is_private(directory, change.path):
            name = printable(os.fsdecode(change.path))
            raise RestoreFailed(f"{name!r} is outside of what a revert may change")
        if not change.is_removed and change.new_mode not in _FILES:
            raise RestoreFailed(f"{printable(os.fsdecode(change.path))!r} is not a file")


def _read_blobs(git: Git, changes: Sequence[TreeChange]) -> dict[str, bytes]:
    """The new contents by name. Raises GitFailed if one is missing."""
    names = sorted({change.new_name for change in changes if not change.is_removed})
    if not names:
        return {}
    body = "".join(f"{name}\n" for name in names).encode()
    output = git.run(
        "cat-file",
        "--batch=%(objectname) %(objecttype) %(objectsize)",
        body=body,
        bytes_max=1 << 30,
    )
    blobs, at = {}, 0
    for name in names:
        end = output.index(b"\n", at)
        fields = output[at:end].split(b" ")
        if fields[1:2] != [b"blob"]:
            raise GitFailed(f"the store has lost the content {name}")
        size = int(fields[2])
        blobs[name] = output[end + 1 : end + 1 + size]
        at = end + size + 2
    return blobs


def _apply(directory: Path, changes: Sequence[TreeChange], blobs: dict[str, bytes]) -> None:
    for change in sorted(changes, key=lambda change: change.path, reverse=True):
        if change.is_removed:
            _remove(directory, change.path)
    for change in sorted(changes, key=lambda change: change.path):
        if not change.is_removed:
            _write(directory, change, blobs[change.new_name])
    for change in changes:
        if not change.is_removed and change.new_mode != _LINK:
            _sync(directory, change.path)


def _remove(directory: Path, path: bytes) -> None:
    """Remove a file, and the directories that are empty then. A directory in its place stays."""
    parent, name = _split(directory, path)
    try:
        with open_directory(parent) as descriptor:
            os.unlink(name, dir_fd=descriptor)
    except OSError as error:
        if error.errno not in _NOTHING_THERE:
            raise
    for place in (parent, *parent.parents):
        if place == directory:
            return
        try:
            with open_directory(place.parent) as above:
                os.rmdir(place.name, dir_fd=above)
        except OSError:
            return


def _write(directory: Path, change: TreeChange, content: bytes) -> None:
    parent, name = _split(directory, change.path)
    with open_directory(parent, make=True) as descriptor:
        now = _status(descriptor, name)
        if now is not None and stat.S_ISDIR(now.st_mode):
            os.rmdir(name, dir_fd=descriptor)
        if change.new_mode == _LINK:
            _write_link(descriptor, name, content)
            return
        mode = _mode(now, program=change.new_mode == _PROGRAM)
        with write_draft(descriptor, content, None, sync=False) as draft:
            draft_name = name_draft(descriptor, draft)
            try:
                os.chmod(draft_name, mode, dir_fd=descriptor)
                os.rename(draft_name, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
            except OSError:
                with suppress(FileNotFoundError):
                    os.unlink(draft_name, dir_fd=descriptor)
                raise


def _sync(directory: Path, path: bytes) -> None:
    """Make a file durable. All files are written before, so that the disk has one long task."""
    parent, name = _split(directory, path)
    with suppress(OSError), open_directory(parent) as above:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_link(descriptor: int, name: str, target: bytes) -> None:
    draft = f".{os.getpid()}-{os.urandom(4).hex()}.fairlead"
    os.symlink(target, draft, dir_fd=descriptor)
    os.rename(draft, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)


def _status(descriptor: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _mode(now: os.stat_result | None, *, program: bool) -> int:
    """The mode of the file that is there, executable or not as the tree says."""
    mode = 0o644 if now is None or not stat.S_ISREG(now.st_mode) else stat.S_IMODE(now.st_mode)
    readers = (mode & 0o444) >> 2
    return mode | readers if program else mode & ~0o111


def _split(directory: Path, path: bytes) -> tuple[Path, str]:
    inner = Path(os.fsdecode(path))
    return directory / inner.parent, inner.name
