"""Frees snapshots: of purged sessions, of sessions that rest for long, and the oldest of a full store."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from fairlead_schema.subjects import Address
from fairlead_tools.file_snapshots.store import SnapshotStore

DAY_S: Final = 24 * 3600.0


def list_stores(root: Path) -> tuple[SnapshotStore, ...]:
    """Every store below the root of all stores."""
    stores = []
    for noted in root.glob("*/worktree"):
        with suppress(OSError):
            stores.append(SnapshotStore(noted.parent, Path(os.fsdecode(noted.read_bytes()))))
    return tuple(stores)


def forget_old(store: SnapshotStore, days: float) -> bool:
    """Forget the sessions whose last snapshot is so old. Returns whether there was one."""
    limit, found = time.time() - days * DAY_S, False
    for at in store.sessions():
        with suppress(FileNotFoundError):
            if store.notes(at).stat().st_mtime < limit:
                store.forget(at)
                found = True
    return found


def prune(store: SnapshotStore) -> None:
    """Remove what no session keeps; without sessions the whole store. Raises GitFailed.

    A worktree that is gone needs no snapshots either.
    """
    with store.lock():
        kept = sorted({tree for at in store.sessions() for tree in store.trees(at)})
        if not kept or not store.worktree.is_dir():
            for at in store.sessions():
                store.forget(at)
            store.drop()
            return
        if not store.exists:
            return
        lines = "".join(f"{tree} refs/snapshots/{tree}\n" for tree in kept)
        (store.repository / "packed-refs").write_text(lines)
        store.git.run("repack", "-a", "-d", "-q")
        store.git.run("prune", "--expire=now")


def shrink(store: SnapshotStore, bytes_max: int) -> bool:
    """Forget the oldest half of the sessions of a store that is too large. Raises GitFailed."""
    if size_of(store.repository) <= bytes_max:
        return False
    sessions = sorted(store.sessions(), key=lambda at: _age(store, at))
    for at in sessions[: (len(sessions) + 1) // 2]:
        store.forget(at)
    prune(store)
    return True


def size_of(directory: Path) -> int:
    """The bytes of all files below a directory."""
    total = 0
    for here, _names, files in os.walk(directory):
        for name in files:
            with suppress(OSError):
                total += os.lstat(Path(here) / name).st_size
    return total


def _age(store: SnapshotStore, at: Address) -> float:
    try:
        return store.notes(at).stat().st_mtime
    except FileNotFoundError:
        return 0.0
