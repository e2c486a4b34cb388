"""Captures the files of a location: what changed since the last capture is hashed, nothing else is read."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from fairlead_tools.file_snapshots.git import Git, GitExceeded, GitFailed
from fairlead_tools.file_snapshots.paths import is_private
from fairlead_tools.file_snapshots.seed import REMOVED, seed_store
from fairlead_tools.file_snapshots.store import SnapshotStore

TRIES: Final = 3
UNTRACKED_BYTES_MAX: Final = 2 << 20
TRACKED_BYTES_MAX: Final = 64 << 20
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class FilesChanged(GitFailed):
    """Files changed while git read them. Another look may find them at rest."""


def capture(store: SnapshotStore, directory: Path, top: Path) -> str:
    """The tree of a directory inside the worktree, as its files are now. The caller holds the lock.

    Files that git ignores are left out, and so are untracked files above 2 MiB, files that nobody may
    read, and repositories inside the worktree. Raises GitFailed.
    """
    if not store.exists:
        store.create()
        seed_store(store, top)
    inner = inner_path(store.worktree, directory)
    for _ in range(TRIES - 1):
        with suppress(FilesChanged):
            _look(store, inner)
            return _write_tree(store.git, inner)
    _look(store, inner)
    return _write_tree(store.git, inner)


def _look(store: SnapshotStore, inner: bytes) -> None:
    """Bring the index up to the files as they are now. Raises FilesChanged, GitFailed."""
    git, place = store.git, () if inner == b"" else (inner,)
    tracked = git.start("diff-files", "--raw", "-z", "--no-renames", "--", *place)
    untracked = git.start("ls-files", "-o", "--exclude-standard", "-z", "--", *place)
    try:
        changes = _pairs(tracked.finish())
        others = [path for path in untracked.finish().split(b"\0") if path]
    finally:
        tracked.stop()
        untracked.stop()
    try:
        _update(git, store.worktree, changes, others)
    except GitExceeded:
        raise
    except GitFailed as error:
        raise FilesChanged(str(error)) from error


def _update(
    git: Git, worktree: Path, changes: list[tuple[bytes, bytes]], others: list[bytes]
) -> None:
    gone = [path for status, path in changes if status == b"D"]
    if gone:
        removed = b"".join(REMOVED + path + b"\0" for path in gone)
        git.run("update-index", "-z", "--index-info", body=removed)
    read = [
        path
        for path in (path for status, path in changes if status != b"D")
        if _is_readable(worktree, path, TRACKED_BYTES_MAX)
    ] + [path for path in others if _is_readable(worktree, path, UNTRACKED_BYTES_MAX)]
    if read:
        body = b"".join(path + b"\0" for path in read)
        git.run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", body=body)


def _write_tree(git: Git, inner: bytes) -> str:
    if inner == b"":
        return git.run("write-tree").decode().strip()
    if not git.run("ls-files", "-z", "--", inner, bytes_max=1 << 28):
        return git.run("mktree").decode().strip()
    return git.run("write-tree", b"--prefix=" + inner + b"/").decode().strip()


def _is_readable(worktree: Path, path: bytes, bytes_max: int) -> bool:
    """Whether git can read a file, which may be a link. A directory here is another repository."""
    if path.endswith(b"/") or is_private(worktree, path):
        return False
    full = os.fsencode(worktree) + b"/" + path
    try:
        status = os.lstat(full)
        if stat.S_ISLNK(status.st_mode):
            return True
        if not stat.S_ISREG(status.st_mode) or status.st_size > bytes_max:
            return False
        os.close(os.open(full, _READ))
    except OSError:
        return False
    return True


def _pairs(output: bytes) -> list[tuple[bytes, bytes]]:
    """The status and the path of each raw line."""
    fields = output.split(b"\0")
    return [
        (about.rsplit(b" ", 1)[-1][:1], path)
        for about, path in zip(fields[::2], fields[1::2], strict=False)
    ]


def inner_path(worktree: Path, directory: Path) -> bytes:
    """The path of a directory inside its worktree; empty for the worktree itself."""
    inner = os.fsencode(directory.relative_to(worktree))
    return b"" if inner == b"." else inner
