"""The uncommitted changes of a directory: what differs from the last commit, and what its index keeps.

The worktree's own index says which files have changed. It is copied first, and never written.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_tools.file_snapshots.capture import (
    TRACKED_BYTES_MAX,
    UNTRACKED_BYTES_MAX,
    capture,
    inner_path,
)
from fairlead_tools.file_snapshots.entries import ABSENT, Entry, entry_now
from fairlead_tools.file_snapshots.git import Git, GitFailed
from fairlead_tools.file_snapshots.own_head import find_head
from fairlead_tools.file_snapshots.paths import is_private
from fairlead_tools.file_snapshots.seed import (
    INDEX_BYTES_MAX,
    OwnRepository,
    copy_index,
    find_repository,
)
from fairlead_tools.file_snapshots.store import SnapshotStore
from fairlead_tools.file_snapshots.trees import compare, replace_entries
from fairlead_tools.files.path import printable

EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_REPOSITORY: Final = b"160000"


class ChangesUnreadable(Exception):
    """The changes cannot be taken along. The message says why."""


@dataclass(frozen=True, slots=True)
class UncommittedChanges:
    """The files as they are and as the index keeps them, and the patch from the last commit."""

    changed: str
    kept: str
    patch: bytes


def find_changes(store: SnapshotStore, directory: Path, top: Path) -> UncommittedChanges | None:
    """The changes of a directory; None without any. The caller holds the lock.

    Raises ChangesUnreadable, GitFailed, OSError.
    """
    changed = capture(store, directory, top)
    own = find_repository(store.worktree, top)
    if own is None or own.index.stat().st_size > INDEX_BYTES_MAX:
        text = f"the repository of {printable(store.worktree)} is incomplete or borrows from others"
        raise ChangesUnreadable(text)
    git = Git(store.repository, store.worktree, borrowed=own.objects)
    inner = inner_path(store.worktree, directory)
    with _copy_index(store, own) as index:
        committed, kept = _entries(git, own, index, inner)
    base = replace_entries(git, changed, committed)
    differing = {change.path for change in compare(git, base, changed)}
    same = {path: entry for path, entry in committed.items() if path not in differing}
    _check_captured(directory, same)
    if not differing:
        return None
    kept_tree = replace_entries(git, changed, {path: kept[path] for path in differing})
    _store_objects(store, git, (base, kept_tree), changed)
    return UncommittedChanges(changed, kept_tree, _patch(git, base, changed))


@contextmanager
def _copy_index(store: SnapshotStore, own: OwnRepository) -> Iterator[Path]:
    index = store.repository / f"index-own-{os.getpid()}-{id(own)}"
    try:
        copy_index(own, index)
        yield index
    finally:
        index.unlink(missing_ok=True)


def _entries(
    git: Git, own: OwnRepository, index: Path, inner: bytes
) -> tuple[dict[bytes, Entry], dict[bytes, Entry]]:
    """What the last commit and the index hold at each path that may have changed."""
    try:
        head = find_head(own) or EMPTY_TREE
    except ValueError as error:
        raise ChangesUnreadable(str(error)) from error
    place = () if inner == b"" else (inner,)
    options = ("--raw", "-z", "--no-renames", "--abbrev=40")
    dirty = git.run("diff-files", *options, "--", *place, index=index)
    staged = git.run("diff-index", "--cached", *options, head, "--", *place, index=index)
    others = git.run("ls-files", "-o", "--exclude-standard", "-z", "--", *place, index=index)
    committed: dict[bytes, Entry] = {}
    kept: dict[bytes, Entry] = {}
    for path, old, _new in _raw_lines(dirty):
        committed[path] = kept[path] = old
    for path, old, new in _raw_lines(staged):
        committed[path], kept[path] = old, new
    for path in filter(None, others.split(b"\0")):
        if not path.endswith(b"/"):
            committed.setdefault(path, ABSENT)
            kept.setdefault(path, ABSENT)
    start = len(inner) + 1 if inner else 0
    wanted = [path for path in committed if not is_private(git.worktree, path)]
    return (
        {path[start:]: committed[path] for path in wanted},
        {path[start:]: kept[path] for path in wanted},
    )


def _raw_lines(output: bytes) -> Iterator[tuple[bytes, Entry, Entry]]:
    """The path and both entries of each line. Raises ChangesUnreadable in the middle of a merge."""
    fields = output.split(b"\0")
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_name, new_name, status = about.lstrip(b":").split(b" ")
        if status[:1] == b"U":
            name = printable(os.fsdecode(path))
            raise ChangesUnreadable(f"{name!r} is in the middle of a merge")
        if _REPOSITORY not in {old_mode, new_mode}:
            yield path, (old_mode, old_name.decode()), (new_mode, new_name.decode())


def _check_captured(directory: Path, committed: Mapping[bytes, Entry]) -> None:
    """Refuse a change that no snapshot holds: a file that is too large, or that nobody may read."""
    for path, entry in sorted(committed.items()):
        full = directory / os.fsdecode(path)
        if not os.path.lexists(full):
            continue
        bytes_max = UNTRACKED_BYTES_MAX if entry == ABSENT else TRACKED_BYTES_MAX
        if full.lstat().st_size > bytes_max or entry_now(directory, path) != entry:
            name = printable(os.fsdecode(path))
            text = f"{name!r} is too large or unreadable: commit, ignore or remove it"
            raise ChangesUnreadable(text)


def _store_objects(store: SnapshotStore, git: Git, trees: tuple[str, ...], known: str) -> None:
    """Copy what the trees borrow from the worktree's own repository into the store."""
    body = "".join(f"{tree}\n" for tree in trees) + f"^{known}\n"
    names = git.run("rev-list", "--objects", "--no-object-names", "--stdin", body=body.encode())
    if names:
        base = str(store.repository / "objects" / "pack" / "pack")
        git.run("pack-objects", "-q", base, body=names)


def _patch(git: Git, before: str, after: str) -> bytes:
    options = ("-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff")
    return git.run("diff-tree", *options, "--no-textconv", "--no-color", before, after)


def apply_patch(git: Git, tree: str, patch: bytes) -> str:
    """The tree with the patch. No file changes. Raises GitFailed if the patch does not fit."""
    index = git.repository / f"index-apply-{os.getpid()}-{id(patch)}"
    try:
        git.run("read-tree", tree, index=index)
        git.run("apply", "--cached", "--whitespace=nowarn", body=patch, index=index)
        return git.run("write-tree", index=index).decode().strip()
    except GitFailed as error:
        text = f"the changes do not apply at the destination: {error}"
        raise ChangesUnreadable(text) from error
    finally:
        with suppress(FileNotFoundError):
            index.unlink()
