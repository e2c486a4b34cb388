"""Measures snapshots of a location with many files: the first one, and later ones."""

import asyncio
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Final

from fairlead_schema.subjects import Address
from fairlead_tools.file_snapshots.adopt import adopt_objects
from fairlead_tools.file_snapshots.capture import capture
from fairlead_tools.file_snapshots.git import find_git
from fairlead_tools.file_snapshots.store import SnapshotStore, open_store

FIRST_MS: Final = "first snapshot of 10,000 files, ms"
UNCHANGED_MS: Final = "later snapshot, nothing changed, ms"
CHANGED_MS: Final = "later snapshot, one file changed, ms"
FILE_SNAPSHOT_BARS: Final = {FIRST_MS: 150.0, UNCHANGED_MS: 30.0, CHANGED_MS: 30.0}
"""The most that each figure may be."""
FILES: Final = 10_000
FILES_IN_DIRECTORY: Final = 100
AT: Final = Address("default", "ses_bench")


async def measure_file_snapshots(directory: Path, *, rounds: int) -> dict[str, float]:
    """The figures of file snapshots; none without git."""
    program = find_git()
    if program is None:
        return {}
    return await asyncio.to_thread(_measure, program, directory, rounds)


def _measure(program: str, directory: Path, rounds: int) -> dict[str, float]:
    worktree = directory / "worktree"
    _make_worktree(program, worktree)
    worktree = worktree.resolve()
    first, unchanged, changed = [], [], []
    for index in range(rounds):
        store = open_store(directory / f"stores-{index}", worktree)
        first.append(_time_capture(store))
        adopt_objects(store)
        unchanged.append(_time_capture(store))
        (worktree / "0" / "0.py").write_text(f"# round {index}\n")
        changed.append(_time_capture(store))
    figures = {FIRST_MS: first, UNCHANGED_MS: unchanged, CHANGED_MS: changed}
    return {name: median(times) * 1000 for name, times in figures.items()}


def _time_capture(store: SnapshotStore) -> float:
    start = time.perf_counter()
    with store.lock():
        store.remember(AT, (capture(store, store.worktree, store.worktree),))
    return time.perf_counter() - start


def _make_worktree(program: str, worktree: Path) -> None:
    """A repository whose files are all known to its index."""
    for index in range(FILES):
        file = worktree / str(index // FILES_IN_DIRECTORY) / f"{index}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {index}\n" + "value = 1\n" * 100)
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    commit = (*identity, "commit", "-qm", "files")
    # Objects of a repository that is in use are packed.
    for arguments in (("init", "-q"), ("add", "-A"), commit, ("repack", "-a", "-d", "-q")):
        command = [program, "-C", str(worktree), *arguments]
        subprocess.run(command, check=True)  # noqa: S603 - an absolute path and no shell
