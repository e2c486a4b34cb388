"""The store of one worktree: a bare repository of our own, outside the worktree, with one lock.

Stores of different worktrees share nothing. The name of a store follows from the canonical path.
"""

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final

from fairlead_schema.subjects import Address
from fairlead_tools.file_snapshots.git import ATTRIBUTES, CONFIG, Git, GitFailed
from fairlead_tools.private_directory import make_private

LOCK_S: Final = 10.0
POLL_S: Final = 0.005
LEFT_LOCK_S: Final = 2.0
"""How long a git of a dead worker may go on before its lock is taken away."""


class StoreBusy(GitFailed):
    """Another capture or restore of the same worktree takes very long."""

    def __init__(self) -> None:
        super().__init__("another snapshot or restore of this worktree takes very long")


@dataclass(frozen=True)
class SnapshotStore:
    """The snapshots of one worktree."""

    directory: Path
    worktree: Path

    @property
    def repository(self) -> Path:
        return self.directory / "git"

    @property
    def alternates(self) -> Path:
        """Names the objects of the worktree's own repository while this store borrows them."""
        return self.repository / "objects" / "info" / "alternates"

    @cached_property
    def git(self) -> Git:
        return Git(self.repository, self.worktree)

    @property
    def exists(self) -> bool:
        return self.repository.is_dir()

    @contextmanager
    def lock(self, wait_s: float = LOCK_S) -> Iterator[None]:
        """Keep every other process on this machine out of the store. Raises StoreBusy."""
        make_private(self.directory)
        descriptor = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            until = time.monotonic() + wait_s
            while not _try_lock(descriptor):
                if time.monotonic() > until:
                    raise StoreBusy
                time.sleep(POLL_S)
            self._clear_left_lock()
            yield
        finally:
            os.close(descriptor)

    def _clear_left_lock(self) -> None:
        """Take away git's own lock. Whoever held it is dead, because this process holds the store."""
        left, until = self.repository / "index.lock", time.monotonic() + LEFT_LOCK_S
        while left.exists():
            if time.monotonic() > until:
                left.unlink(missing_ok=True)
                return
            time.sleep(POLL_S)

    def create(self) -> None:
        """Make an empty repository. It gets its name when it is complete."""
        draft = self.directory / f"draft-{secrets.token_hex(4)}"
        for name in ("objects/info", "objects/pack", "refs", "info"):
            (draft / name).mkdir(parents=True, mode=0o700)
        (draft / "HEAD").write_text("ref: refs/heads/none\n")
        (draft / "config").write_text(CONFIG)
        (draft / "info" / "attributes").write_text(ATTRIBUTES)
        (self.directory / "worktree").write_bytes(os.fsencode(self.worktree))
        draft.rename(self.repository)

    def drop(self) -> None:
        """Remove the repository with all snapshots."""
        shutil.rmtree(self.repository, ignore_errors=True)

    def remember(self, at: Address, trees: Iterable[str]) -> None:
        """Keep trees for a session. The age of its snapshots counts from now."""
        noted = self.notes(at)
        noted.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = self.trees(at)
        with noted.open("a") as file:
            file.writelines(f"{tree}\n" for tree in dict.fromkeys(trees) if tree not in known)
        os.utime(noted)

    def notes(self, at: Address) -> Path:
        return self.directory / "sessions" / at.tenant / at.session_id

    def transfer_note(self, at: Address) -> Path:
        """Where the store notes how far a transfer of a session into its worktree has come."""
        return self.directory / "transfers" / at.tenant / at.session_id

    def trees(self, at: Address) -> frozenset[str]:
        """The trees that a session keeps."""
        with suppress(FileNotFoundError):
            return frozenset(self.notes(at).read_text().split())
        return frozenset()

    def sessions(self) -> tuple[Address, ...]:
        """The sessions that keep snapshots here."""
        paths = (self.directory / "sessions").glob("*/*")
        return tuple(Address(path.parent.name, path.name) for path in paths)

    def forget(self, at: Address) -> None:
        """Keep nothing for a session any more. The next pruning frees what nobody else keeps."""
        with suppress(FileNotFoundError):
            self.notes(at).unlink()
        self.transfer_note(at).unlink(missing_ok=True)


def open_store(root: Path, worktree: Path) -> SnapshotStore:
    """The store of a canonical worktree below the root of all stores."""
    make_private(root)
    name = sha256(os.fsencode(worktree)).hexdigest()[:32]
    return SnapshotStore(root / name, worktree)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
