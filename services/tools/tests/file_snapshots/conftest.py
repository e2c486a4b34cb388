"""Worktrees with a git repository, and a store for their snapshots."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairlead_tools.file_snapshots import trees
from fairlead_tools.file_snapshots.capture import capture
from fairlead_tools.file_snapshots.restore import restore
from fairlead_tools.file_snapshots.store import SnapshotStore, open_store

OWN_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}


def own_git(worktree: Path, *arguments: str) -> str:
    """A command of the person who owns the worktree."""
    command = ["git", "-C", str(worktree), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, env=OWN_ENVIRONMENT)
    return done.stdout.decode()


@dataclass(frozen=True)
class Worktree:
    """A repository of a person, and the store of its snapshots."""

    root: Path
    store: SnapshotStore

    def write(self, path: str, text: str | bytes = "x\n") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def commit(self) -> None:
        own_git(self.root, "add", "-A")
        own_git(self.root, "commit", "-qm", "work", "--allow-empty")

    def capture(self, inner: str = ".") -> str:
        with self.store.lock():
            return capture(self.store, self.root / inner, self.root.parent)

    def files(self, tree: str) -> set[str]:
        listed = self.store.git.run("ls-tree", "-r", "-z", "--name-only", tree)
        return {os.fsdecode(path) for path in listed.split(b"\0") if path}

    def restore(self, before: str, after: str, inner: str = ".") -> None:
        git = self.store.git
        restore(git, self.root / inner, trees.compare(git, before, after))


MakeWorktree = Callable[[str], Worktree]


@pytest.fixture
def make_worktree(tmp_path: Path) -> MakeWorktree:
    stores = tmp_path / "stores"

    def make(name: str) -> Worktree:
        root = tmp_path / name
        root.mkdir()
        own_git(root, "init", "-q")
        return Worktree(root.resolve(), open_store(stores, root.resolve()))

    return make


@pytest.fixture
def worktree(make_worktree: MakeWorktree) -> Worktree:
    return make_worktree("project")
