"""Copies borrowed objects into the store, because their own repository may remove them at any time."""

import logging

from fairlead_tools.file_snapshots.git import GitFailed
from fairlead_tools.file_snapshots.store import SnapshotStore

log = logging.getLogger(__name__)


def adopt_objects(store: SnapshotStore) -> None:
    """Pack every object that the store needs, then stop to borrow. A failure is tried again later."""
    try:
        names = _needed_objects(store)
        base = str(store.repository / "objects" / "pack" / "pack")
        store.git.run("pack-objects", "-q", base, body=names)
        with store.lock():
            _stop_borrowing(store)
    except (GitFailed, OSError) as error:
        extra = {"worktree": str(store.worktree), "reason": str(error)}
        log.warning("snapshots still need the objects of their worktree's repository", extra=extra)


def _needed_objects(store: SnapshotStore) -> bytes:
    """The names of all objects of the index and of all snapshots."""
    index = store.git.run("ls-files", "-s", "-z").split(b"\0")
    files = {line.split(b" ", 2)[1] for line in index if line}
    kept = {tree for at in store.sessions() for tree in store.trees(at)}
    body = "".join(f"{tree}\n" for tree in sorted(kept)).encode()
    listed = store.git.run("rev-list", "--objects", "--no-object-names", "--stdin", body=body)
    return b"".join(name + b"\n" for name in sorted(files | set(listed.split())))


def _stop_borrowing(store: SnapshotStore) -> None:
    """Put the objects of others aside. If one is missing then, borrow again. The caller has the lock."""
    aside = store.alternates.with_name("aside")
    if not store.alternates.exists():
        return
    store.alternates.rename(aside)
    try:
        _check_complete(store)
    except (GitFailed, OSError):
        aside.rename(store.alternates)
        raise
    aside.unlink()


def _check_complete(store: SnapshotStore) -> None:
    found = store.git.run("cat-file", "--batch-check=%(objecttype)", body=_needed_objects(store))
    if b"missing" in found:
        raise GitFailed("an object was borrowed meanwhile")
