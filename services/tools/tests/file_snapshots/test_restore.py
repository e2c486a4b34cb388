"""Restores: the paths that differ, nothing else, and each of two states after any failure."""

import os
from pathlib import Path

import pytest

from fairlead_session.revert.plan import StepSpan
from fairlead_tools.file_snapshots import trees
from fairlead_tools.file_snapshots.restore import RestoreFailed, restore
from fairlead_tools.file_snapshots.trees import TreeChange
from fairlead_tools.files.private import PRIVATE
from services.tools.tests.file_snapshots.conftest import Worktree


def contents(root: Path) -> dict[str, str]:
    """Every file and link below a directory, except for its repository."""
    paths = (path for path in root.rglob("*") if ".git" not in path.relative_to(root).parts)
    return {
        str(path.relative_to(root)): f"-> {path.readlink()}"
        if path.is_symlink()
        else path.read_text()
        for path in paths
        if path.is_symlink() or path.is_file()
    }


def test_only_paths_that_differ_are_touched(worktree: Worktree) -> None:
    """N-14: changed files come back, new files go, and everything else stays."""
    worktree.write("changed.txt", "before\n")
    worktree.write("gone.txt", "gone\n")
    worktree.write("untouched.txt")
    before = worktree.capture()
    worktree.write("changed.txt", "after\n")
    (worktree.root / "gone.txt").unlink()
    worktree.write("new/deep/file.txt")
    after = worktree.capture()
    worktree.write("untouched.txt", "by a person\n")
    worktree.write("other.txt", "by a person\n")

    worktree.restore(after, before)

    assert contents(worktree.root) == {
        "changed.txt": "before\n",
        "gone.txt": "gone\n",
        "untouched.txt": "by a person\n",
        "other.txt": "by a person\n",
    }
    assert not (worktree.root / "new").exists(), "directories that are empty now are gone"
    worktree.restore(before, after)
    assert contents(worktree.root)["changed.txt"] == "after\n"


def test_a_restore_again_changes_nothing(worktree: Worktree) -> None:
    worktree.write("a.txt", "before\n")
    before = worktree.capture()
    worktree.write("a.txt", "after\n")
    worktree.write("b.txt")
    after = worktree.capture()

    for _ in range(3):
        worktree.restore(after, before)
        assert contents(worktree.root) == {"a.txt": "before\n"}


def test_files_directories_and_links_replace_each_other(worktree: Worktree) -> None:
    worktree.write("swap/inner.txt", "inner\n")
    worktree.write("plain", "plain\n")
    (worktree.root / "link").symlink_to("plain")
    worktree.write("run.sh", "#!/bin/sh\n").chmod(0o750)
    before, state = worktree.capture(), contents(worktree.root)
    (worktree.root / "swap" / "inner.txt").unlink()
    (worktree.root / "swap").rmdir()
    worktree.write("swap", "now a file\n")
    (worktree.root / "plain").unlink()
    worktree.write("plain/inner.txt")
    (worktree.root / "link").unlink()
    worktree.write("link", "now a file\n")
    (worktree.root / "run.sh").chmod(0o640)
    after, changed = worktree.capture(), contents(worktree.root)

    worktree.restore(after, before)
    assert contents(worktree.root) == state
    assert (worktree.root / "run.sh").stat().st_mode & 0o777 == 0o750
    worktree.restore(before, after)
    assert contents(worktree.root) == changed
    assert (worktree.root / "run.sh").stat().st_mode & 0o777 == 0o640


def test_no_link_leads_a_restore_out_of_the_location(worktree: Worktree, tmp_path: Path) -> None:
    """N-14: a directory that became a link is no way out."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim.txt").write_text("mine\n")
    worktree.write("dir/victim.txt", "before\n")
    before = worktree.capture()
    worktree.write("dir/victim.txt", "after\n")
    after = worktree.capture()
    (worktree.root / "dir" / "victim.txt").unlink()
    (worktree.root / "dir").rmdir()
    (worktree.root / "dir").symlink_to(outside)

    with pytest.raises(RestoreFailed):
        worktree.restore(after, before)

    assert (outside / "victim.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    "path", [b"../x", b"a/../../x", b".git/hooks/x", b"a/.GIT/x", b"/x", b"a//b", b"."]
)
def test_escaping_paths_are_refused_before_any_file_changes(
    worktree: Worktree, path: bytes
) -> None:
    """N-14"""
    worktree.write("a.txt")
    tree = worktree.capture()
    name = worktree.store.git.run("rev-parse", f"{tree}:a.txt").decode().strip()
    changes = [
        TreeChange(b"new.txt", b"000000", "0" * 40, b"100644", name, b"A"),
        TreeChange(path, b"000000", "0" * 40, b"100644", name, b"A"),
    ]

    with pytest.raises(RestoreFailed, match="outside"):
        restore(worktree.store.git, worktree.root, changes)

    assert contents(worktree.root) == {"a.txt": "x\n"}


def test_private_directories_are_never_restored(
    worktree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktree.write("state/a.txt", "before\n")
    before = worktree.capture()
    worktree.write("state/a.txt", "after\n")
    after = worktree.capture()
    monkeypatch.setattr(PRIVATE, "_access", {})
    PRIVATE.hide(worktree.root / "state")

    with pytest.raises(RestoreFailed, match="outside"):
        worktree.restore(after, before)


def test_a_file_that_cannot_change_takes_all_others_back(worktree: Worktree) -> None:
    """The files end in one of two states: a directory with files of a person stands in the way."""
    for name in ("a.txt", "m.txt", "z.txt"):
        worktree.write(name, "before\n")
    before = worktree.capture()
    for name in ("a.txt", "z.txt"):
        worktree.write(name, "after\n")
    (worktree.root / "m.txt").unlink()
    after = worktree.capture()
    worktree.write(".git/info/exclude", "m.txt/\n")
    worktree.write("m.txt/of-a-person.txt", "mine\n")

    with pytest.raises(RestoreFailed, match=r"m\.txt"):
        worktree.restore(after, before)

    assert contents(worktree.root) == {
        "a.txt": "after\n",
        "z.txt": "after\n",
        "m.txt/of-a-person.txt": "mine\n",
    }


def test_each_file_goes_back_to_the_first_step_that_changed_it(worktree: Worktree) -> None:
    """N-03, N-04: files of people between the steps stay, and files of a later boundary too."""
    worktree.write("one.txt", "0\n")
    worktree.write("two.txt", "0\n")
    worktree.write("person.txt", "0\n")
    first = worktree.capture()
    worktree.write("one.txt", "1\n")
    second = worktree.capture()
    worktree.write("person.txt", "by a person\n")
    third = worktree.capture()
    worktree.write("one.txt", "2\n")
    worktree.write("two.txt", "2\n")
    worktree.write("new.txt", "2\n")
    now = worktree.capture()
    git = worktree.store.git
    steps = (StepSpan(first, second), StepSpan(third, now))

    target = trees.build_target(git, now, steps)

    worktree.restore(now, target)
    everything = {"one.txt": "0\n", "two.txt": "0\n", "person.txt": "by a person\n"}
    assert contents(worktree.root) == everything
    later = trees.build_target(git, now, (StepSpan(third, None),))
    worktree.restore(target, later)
    assert contents(worktree.root) == everything | {"one.txt": "1\n"}
    assert trees.build_target(git, now, ()) == now


def test_a_difference_has_counts_and_patches(worktree: Worktree) -> None:
    """N-06: what a revert changes is shown by file, also for names that look like a patch."""
    hostile = "diff --git a/x b/x"
    worktree.write("a.txt", "one\ntwo\n")
    worktree.write("gone.txt", "gone\n")
    worktree.write(hostile, "diff --git a/a.txt b/a.txt\n")
    worktree.write("image.bin", b"\0\1\2")
    before = worktree.capture()
    worktree.write("a.txt", "one\n2\nthree\n")
    (worktree.root / "gone.txt").unlink()
    worktree.write(hostile, "+++ b/a.txt\n")
    worktree.write("image.bin", b"\0\3")
    worktree.write("new\nline.txt", "new\n")
    after = worktree.capture()

    diff, files = trees.describe(worktree.store.git, before, after)

    shown = {file.path: (file.status, file.additions, file.deletions) for file in files}
    assert shown == {
        "a.txt": ("modified", 2, 1),
        "gone.txt": ("deleted", 0, 1),
        f"{hostile}": ("modified", 1, 1),
        "image.bin": ("modified", 0, 0),
        "new\nline.txt": ("added", 1, 0),
    }
    patches = {file.path: file.patch for file in files}
    assert "-two\n+2\n+three\n" in patches["a.txt"]
    assert patches[hostile].startswith("diff --git ")
    assert "+++ b/a.txt" in patches[hostile]
    assert diff is not None
    assert "+three" in diff
    assert trees.describe(worktree.store.git, after, after) == (None, ())


def test_a_long_difference_is_cut_by_files(worktree: Worktree) -> None:
    before = worktree.capture()
    for index in range(8):
        worktree.write(f"long-{index}.txt", "line of text\n" * 4_000)
    worktree.write("huge.txt", "line of text\n" * 40_000)
    after = worktree.capture()

    diff, files = trees.describe(worktree.store.git, before, after)

    assert {file.path: file.additions for file in files}["huge.txt"] == 40_000
    assert {file.path: file.patch for file in files}["huge.txt"] == ""
    assert diff is not None
    assert len(diff) <= trees.DIFF_BYTES_MAX


def test_names_that_are_no_text_are_shown_and_restored(worktree: Worktree) -> None:
    name = os.fsdecode(b"caf\xe9")
    before = worktree.capture()
    worktree.write(name)
    after = worktree.capture()

    assert trees.changed_paths(worktree.store.git, before, after) == ("caf�",)
    worktree.restore(after, before)
    assert not (worktree.root / name).exists()
