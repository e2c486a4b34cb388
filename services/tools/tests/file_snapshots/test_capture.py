"""Snapshots of files: what they hold, what they leave out, and what they never run."""

import os
import subprocess
from pathlib import Path

import pytest

from fairlead_schema.subjects import Address
from fairlead_tools.file_snapshots import adopt
from fairlead_tools.file_snapshots import capture as capture_module
from fairlead_tools.file_snapshots import store as store_module
from fairlead_tools.file_snapshots.capture import UNTRACKED_BYTES_MAX, capture
from fairlead_tools.file_snapshots.git import Git, GitFailed
from fairlead_tools.files.private import PRIVATE
from services.tools.tests.file_snapshots.conftest import MakeWorktree, Worktree, own_git


def test_a_snapshot_holds_tracked_and_new_files(worktree: Worktree) -> None:
    worktree.write("a.txt")
    worktree.commit()
    worktree.write("new/b.txt")

    tree = worktree.capture()

    assert worktree.files(tree) == {"a.txt", "new/b.txt"}
    assert worktree.capture() == tree, "the same files have the same name"


def test_ignored_and_large_untracked_files_are_left_out(worktree: Worktree) -> None:
    """N-13: also exclusions that only the repository itself has."""
    large = b"x" * (UNTRACKED_BYTES_MAX + 1)
    worktree.write("tracked.bin", large)
    worktree.commit()
    worktree.write(".gitignore", "*.log\nbuild/\n")
    worktree.write(".git/info/exclude", "secret.env\n")
    for name in ("a.log", "build/out", "secret.env"):
        worktree.write(name)
    worktree.write("large.bin", large)
    worktree.write("small.bin", b"x" * UNTRACKED_BYTES_MAX)

    assert worktree.files(worktree.capture()) == {"tracked.bin", ".gitignore", "small.bin"}


def test_a_snapshot_is_limited_to_the_location(worktree: Worktree) -> None:
    """N-13: paths are relative to the location, and its parents' exclusions count."""
    worktree.write("app/a.txt")
    worktree.write("other/b.txt")
    worktree.write(".gitignore", "*.log\n")
    worktree.commit()
    worktree.write("app/new.txt")
    worktree.write("app/x.log")
    worktree.write("other/new.txt")

    assert worktree.files(worktree.capture("app")) == {"a.txt", "new.txt"}
    assert worktree.files(worktree.capture("other")) == {"b.txt", "new.txt"}


def test_an_empty_location_has_a_snapshot(worktree: Worktree) -> None:
    (worktree.root / "empty").mkdir()
    worktree.write("a.txt")

    assert worktree.files(worktree.capture("empty")) == set()


def test_stores_are_separate_for_each_worktree(make_worktree: MakeWorktree) -> None:
    """N-15: one path, one store; another path, another store."""
    one, other = make_worktree("one"), make_worktree("other")
    one.write("a.txt", "one\n")
    tree = one.capture()
    other.write("b.txt")
    other.capture()

    assert one.store.directory != other.store.directory
    assert own_git(one.root, "status", "--porcelain") == "?? a.txt\n", "the worktree is untouched"
    with pytest.raises(GitFailed):
        other.files(tree)


def test_a_snapshot_follows_every_kind_of_change(worktree: Worktree) -> None:
    worktree.write("keep.txt")
    worktree.write("gone.txt")
    worktree.write("folder/inner.txt")
    worktree.write("file")
    worktree.commit()
    worktree.capture()
    (worktree.root / "gone.txt").unlink()
    (worktree.root / "folder" / "inner.txt").unlink()
    (worktree.root / "folder").rmdir()
    (worktree.root / "folder").symlink_to("keep.txt")
    (worktree.root / "file").unlink()
    worktree.write("file/below.txt")

    tree = worktree.capture()

    assert worktree.files(tree) == {"keep.txt", "folder", "file/below.txt"}
    assert worktree.store.git.run("cat-file", "blob", f"{tree}:folder") == b"keep.txt"


HOSTILE = (
    "a\nb",
    "-rf",
    "--cached",
    ":(glob)*",
    "ünï→",
    "sp ace",
    'quo"te',
    "*",
    "tab\tx",
    "\\back",
)


def test_hostile_names_are_only_names(worktree: Worktree) -> None:
    names = {*HOSTILE, os.fsdecode(b"not-\xff-utf8"), "dir\n/-x"}
    for name in names:
        worktree.write(name)

    assert worktree.files(worktree.capture()) == names
    for name in names:
        worktree.write(name, "other\n")
    first = worktree.capture()
    for name in names:
        (worktree.root / name).unlink()
    worktree.restore(worktree.capture(), first)
    assert {(worktree.root / name).read_text() for name in names} == {"other\n"}


def test_unreadable_files_do_not_end_a_snapshot(worktree: Worktree) -> None:
    worktree.write("a.txt")
    os.mkfifo(worktree.root / "pipe")
    inner = worktree.root / "nested"
    inner.mkdir()
    own_git(inner, "init", "-q")
    (inner / "x").write_text("x")

    assert worktree.files(worktree.capture()) == {"a.txt"}


def test_private_directories_are_left_out(
    worktree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 12: the state of a stack often lies inside a location, and contains tokens."""
    monkeypatch.setattr(PRIVATE, "_access", {})
    PRIVATE.hide(worktree.root / ".fairlead")
    worktree.write(".fairlead/token", "secret")
    worktree.write("a.txt")

    assert worktree.files(worktree.capture()) == {"a.txt"}


def test_a_hostile_repository_runs_nothing(worktree: Worktree, tmp_path: Path) -> None:
    """Hooks, filters, monitors and external diffs of a worktree are programs of a stranger."""
    trap = tmp_path / "trap"
    spring = f"touch {trap}; cat"
    worktree.write("a.txt")
    worktree.commit()
    for key in ("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv",
                "diff.x.command", "core.fsmonitor", "core.sshCommand", "diff.external",
                "credential.helper", "core.editor"):  # fmt: skip
        own_git(worktree.root, "config", key, spring)
    own_git(worktree.root, "config", "core.hooksPath", str(tmp_path))
    for hook in ("post-index-change", "pre-commit", "reference-transaction"):
        for place in (tmp_path, worktree.root / ".git" / "hooks"):
            place.mkdir(exist_ok=True)
            (place / hook).write_text(f"#!/bin/sh\n{spring}\n")
            (place / hook).chmod(0o755)
    worktree.write(".gitattributes", "* filter=x diff=x\n")
    worktree.write("b.txt", "b\n")

    first = worktree.capture()
    worktree.write("b.txt", "c\n")
    second = worktree.capture()
    worktree.restore(second, first)

    assert (worktree.root / "b.txt").read_text() == "b\n"
    assert not trap.exists()


def test_bytes_are_stored_as_they_are(worktree: Worktree) -> None:
    """Line endings and filters of the worktree's repository do not change what comes back."""
    worktree.write(
        ".gitattributes", "*.txt text eol=crlf\n*.utf16 working-tree-encoding=UTF-16\n*.id ident\n"
    )
    contents = {
        "dos.txt": b"one\r\ntwo\r\n",
        "unix.txt": b"one\ntwo\n",
        "wide.utf16": "wide\n".encode("utf-16"),
        "x.id": b"$Id: 12 $\n",
    }
    for name, content in contents.items():
        worktree.write(name, content)
    worktree.commit()

    first = worktree.capture()
    for name in contents:
        worktree.write(name, b"changed")
    worktree.restore(worktree.capture(), first)

    for name, content in contents.items():
        assert (worktree.root / name).read_bytes() == content, name


def test_objects_that_the_person_removes_stay_in_the_store(worktree: Worktree) -> None:
    """The store borrows objects only until it has copied them."""
    worktree.write("a.txt", "first\n")
    worktree.commit()
    tree = worktree.capture()
    store = worktree.store
    assert store.alternates.exists()
    store.remember(Address("default", "ses_1"), (tree,))

    adopt.adopt_objects(store)

    assert not store.alternates.exists()
    subprocess.run(["rm", "-rf", str(worktree.root / ".git" / "objects")], check=True)
    assert store.git.run("cat-file", "blob", f"{tree}:a.txt") == b"first\n"
    worktree.write("b.txt")
    assert worktree.files(worktree.capture()) == {"a.txt", "b.txt"}


def test_a_repository_outside_the_root_lends_nothing(make_worktree: MakeWorktree) -> None:
    """A `.git` that points into another tenant's repository must not open its objects."""
    other = make_worktree("other")
    other.write("secret.txt", "secret\n")
    other.commit()
    mine = make_worktree("mine")
    subprocess.run(["rm", "-rf", str(mine.root / ".git")], check=True)
    (mine.root / ".git").write_text(f"gitdir: {other.root}/.git\n")
    mine.write("a.txt")

    with mine.store.lock():
        tree = capture(mine.store, mine.root, mine.root)

    assert mine.files(tree) == {"a.txt"}
    assert not mine.store.alternates.exists()


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_git_was_told_to_ignore_is_captured(worktree: Worktree, flag: str) -> None:
    worktree.write("a.txt", "before\n")
    worktree.commit()
    own_git(worktree.root, "update-index", flag, "a.txt")
    worktree.write("a.txt", "after!\n")

    tree = worktree.capture()

    assert worktree.store.git.run("cat-file", "blob", f"{tree}:a.txt") == b"after!\n"


def test_a_corrupt_index_only_costs_time(worktree: Worktree) -> None:
    worktree.write("a.txt")
    worktree.commit()
    worktree.write(".git/index", b"DIRC nonsense")

    assert worktree.files(worktree.capture()) == {"a.txt"}


def test_git_is_bounded_in_time_and_output(worktree: Worktree) -> None:
    worktree.write("a.txt")
    worktree.capture()
    os.mkfifo(worktree.root / "pipe")
    git = Git(worktree.store.repository, worktree.root, timeout_s=0.2)

    with pytest.raises(GitFailed, match="too long"):
        git.run("hash-object", "--no-filters", "pipe")
    with pytest.raises(GitFailed, match="more than 1 bytes"):
        worktree.store.git.run("ls-files", bytes_max=1)
    with pytest.raises(GitFailed, match="failed"):
        worktree.store.git.run("cat-file", "-e", "0" * 40)


def test_a_change_in_the_second_of_the_last_commit_is_seen(worktree: Worktree) -> None:
    """N-13: the index of the person says nothing about a file that changed right after it."""
    worktree.write("a.txt", "one\n")
    worktree.commit()
    worktree.write("a.txt", "two\n")

    tree = worktree.capture()

    assert worktree.store.git.run("cat-file", "blob", f"{tree}:a.txt") == b"two\n"


def test_the_lock_of_a_git_that_was_killed_stops_no_later_snapshot(
    worktree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N-12: git leaves its own lock behind when it is killed, and a store would be dead for ever."""
    monkeypatch.setattr(store_module, "LEFT_LOCK_S", 0.01)
    worktree.write("a.txt")
    worktree.capture()
    (worktree.store.repository / "index.lock").touch()
    worktree.write("b.txt")

    assert worktree.files(worktree.capture()) == {"a.txt", "b.txt"}


@pytest.mark.parametrize("after", ["directory", "nothing"])
def test_a_file_that_changes_during_a_snapshot_costs_another_look(
    worktree: Worktree, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """D-36: a command in the background may write while a step begins or ends."""
    worktree.write("a.txt")
    changing = worktree.write("b.txt")
    is_readable = capture_module._is_readable  # noqa: SLF001 - the moment between look and read

    def change_then_read(root: Path, path: bytes, bytes_max: int) -> bool:
        readable = is_readable(root, path, bytes_max)
        if path == b"b.txt" and changing.is_file():
            changing.unlink()
            if after == "directory":
                worktree.write("b.txt/inner.txt")
        return readable

    monkeypatch.setattr(capture_module, "_is_readable", change_then_read)

    expected = {"a.txt", "b.txt/inner.txt"} if after == "directory" else {"a.txt"}
    assert worktree.files(worktree.capture()) == expected
