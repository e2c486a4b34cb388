"""Begins a store from the worktree's own repository, so that the first snapshot hashes only what changed.

The index there says which files it has seen unchanged. The index and the objects are data of people and
models: nothing in them is trusted beyond the content of files, and no configuration is read.
"""

import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_tools.file_snapshots.git import GitFailed
from fairlead_tools.file_snapshots.paths import is_safe
from fairlead_tools.file_snapshots.store import SnapshotStore

INDEX_BYTES_MAX: Final = 256 << 20
REMOVED: Final = b"0 " + b"0" * 40 + b"\t"
_FILES: Final = frozenset({b"100644", b"100755", b"120000"})
_ENTRY: Final = re.compile(rb"([A-Za-z?]) (\d{6}) ([0-9a-f]{40}) (\d)\t(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OwnRepository:
    """Where the worktree's own repository keeps its index, its objects and its exclusions."""

    directory: Path
    common: Path
    index: Path
    objects: Path

    @property
    def exclude(self) -> Path:
        return self.common / "info" / "exclude"


def seed_store(store: SnapshotStore, top: Path) -> None:
    """Fill a new store. Without a usable repository inside `top` it stays empty, and is only slower."""
    source = find_repository(store.worktree, top)
    if source is None:
        return
    with suppress(OSError):
        shutil.copyfile(source.exclude, store.repository / "info" / "exclude")
    try:
        if source.index.stat().st_size > INDEX_BYTES_MAX:
            return
        copy_index(source, store.repository / "index")
        store.alternates.write_bytes(os.fsencode(source.objects) + b"\n")
        _check_index(store)
    except (OSError, GitFailed, ValueError):
        for leftover in (store.alternates, store.repository / "index"):
            leftover.unlink(missing_ok=True)


def find_repository(worktree: Path, top: Path) -> OwnRepository | None:
    """The repository of a worktree, if all of it is inside `top` and borrows from no other."""
    try:
        directory = _git_directory(worktree / ".git")
        common = directory
        if (directory / "commondir").is_file():
            common = directory / (directory / "commondir").read_text().strip()
        objects = Path(os.path.realpath(common / "objects", strict=True))
        index = Path(os.path.realpath(directory / "index", strict=True))
    except (OSError, ValueError):
        return None
    inside = all(path.is_relative_to(top) for path in (objects, index))
    if not inside or (objects / "info" / "alternates").exists() or b"\n" in os.fsencode(objects):
        return None
    return OwnRepository(directory, common, index, objects)


def copy_index(own: OwnRepository, path: Path) -> None:
    """Copy an index with its time. Git reads again what changed in the second of that time."""
    written = own.index.stat().st_mtime_ns
    shutil.copyfile(own.index, path)
    os.utime(path, ns=(written, written))


def _git_directory(link: Path) -> Path:
    if link.is_dir():
        return link
    text = link.read_text()
    if not text.startswith("gitdir: "):
        raise ValueError(link)
    return link.parent / text.removeprefix("gitdir: ").strip()


def _check_index(store: SnapshotStore) -> None:
    """Drop the entries that do not say what the file holds. They count as new files then.

    These are conflicts, submodules, files that somebody told git to ignore, and files that a filter
    stored in another form, as their size shows. Raises GitFailed, ValueError.
    """
    git = store.git
    entries = [
        entry.groups()
        for line in git.run("ls-files", "-s", "-v", "-z").split(b"\0")
        if line and (entry := _ENTRY.fullmatch(line))
    ]
    names = b"".join(name + b"\n" for _tag, _mode, name, _stage, _path in entries)
    sizes = git.run("cat-file", "--batch-check=%(objectsize)", body=names).split(b"\n")
    dropped = []
    root = os.fsencode(store.worktree) + b"/"
    for (tag, mode, _name, stage, path), size in zip(entries, sizes, strict=False):
        if not is_safe(path):
            raise ValueError(path)
        if tag != b"H" or stage != b"0" or mode not in _FILES or _differs(root + path, size):
            dropped.append(REMOVED + path + b"\0")
    if dropped:
        git.run("update-index", "-z", "--index-info", body=b"".join(dropped))


def _differs(path: bytes, size: bytes) -> bool:
    try:
        return os.lstat(path).st_size != int(size)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
