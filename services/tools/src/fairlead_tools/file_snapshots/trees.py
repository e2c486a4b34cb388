"""Compares trees, and builds the tree that a revert goes to."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fairlead_schema.session_values.revert_state import RevertedFile
from fairlead_session.revert.plan import StepSpan
from fairlead_tools.file_snapshots.git import Git, GitFailed
from fairlead_tools.files.path import printable

PATCH_BYTES_MAX: Final = 64 << 10
DIFF_BYTES_MAX: Final = 128 << 10
FILES_MAX: Final = 1_000
_ABSENT: Final = b"000000"
_STATUS: Final[dict[bytes, Literal["added", "modified", "deleted"]]] = {
    b"A": "added",
    b"D": "deleted",
}


@dataclass(frozen=True, slots=True)
class TreeChange:
    """One file that differs between two trees: its mode and its content on both sides."""

    path: bytes
    old_mode: bytes
    old_name: str
    new_mode: bytes
    new_name: str
    status: bytes

    @property
    def is_removed(self) -> bool:
        return self.new_mode == _ABSENT

    def reverse(self) -> "TreeChange":
        """The change from the second tree to the first."""
        status = {b"A": b"D", b"D": b"A"}.get(self.status, self.status)
        return TreeChange(
            self.path, self.new_mode, self.new_name, self.old_mode, self.old_name, status
        )


def has_trees(git: Git, trees: Iterable[str]) -> bool:
    """Whether the store holds all these trees."""
    names = "".join(f"{tree}\n" for tree in trees).encode()
    found = git.run("cat-file", "--batch-check=%(objecttype)", body=names).split(b"\n")
    return all(kind == b"tree" for kind in found if kind)


def compare(git: Git, before: str, after: str) -> list[TreeChange]:
    """The files that differ, by path. Raises GitFailed."""
    if before == after:
        return []
    fields = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", before, after).split(b"\0")
    changes = []
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_name, new_name, status = about.lstrip(b":").split(b" ")
        names = old_name.decode(), new_name.decode()
        changes.append(TreeChange(path, old_mode, names[0], new_mode, names[1], status[:1]))
    return changes


def build_target(git: Git, original: str, steps: Sequence[StepSpan]) -> str:
    """The original tree with each file as it was before the first step that changed it (N-03)."""
    restored: dict[bytes, TreeChange] = {}
    for step in steps:
        for change in compare(git, step.start, original if step.end is None else step.end):
            restored.setdefault(change.path, change)
    entries = {path: (change.old_mode, change.old_name) for path, change in restored.items()}
    return replace_entries(git, original, entries)


def replace_entries(git: Git, tree: str, entries: Mapping[bytes, tuple[bytes, str]]) -> str:
    """The tree with other entries at some paths, each a mode and a name. Raises GitFailed."""
    if not entries:
        return tree
    lines = [
        b"%s %s\t%s\0" % (mode.lstrip(b"0") or b"0", name.encode(), path)
        for path, (mode, name) in entries.items()
    ]
    # Names that leave go first: a directory may come back where a file is now.
    lines.sort(key=lambda line: not line.startswith(b"0 "))
    index = git.repository / f"index-{os.getpid()}-{id(lines)}"
    try:
        git.run("read-tree", tree, index=index)
        git.run(
            "update-index", "-z", "--replace", "--index-info", body=b"".join(lines), index=index
        )
        return git.run("write-tree", index=index).decode().strip()
    finally:
        index.unlink(missing_ok=True)


def changed_paths(git: Git, before: str, after: str) -> tuple[str, ...] | None:
    """The paths that differ; None if they are too many to name."""
    paths = [printable(os.fsdecode(change.path)) for change in compare(git, before, after)]
    return None if len(paths) > FILES_MAX else tuple(paths)


def describe(git: Git, before: str, after: str) -> tuple[str | None, tuple[RevertedFile, ...]]:
    """The difference of two trees for people: one text, and each file with its counts and patch.

    A long patch is left out, and so are the files beyond the first thousand. The counts stay.
    """
    changes = compare(git, before, after)[:FILES_MAX]
    if not changes:
        return None, ()
    counts = _count_lines(git, before, after)
    patches = _patches(git, before, after)
    files, room = [], DIFF_BYTES_MAX
    for change in changes:
        patch = patches.get(change.path, "")
        kept = patch if len(patch) <= min(PATCH_BYTES_MAX, room) else ""
        room -= len(kept)
        additions, deletions = counts.get(change.path, (0, 0))
        files.append(
            RevertedFile(
                path=printable(os.fsdecode(change.path)),
                status=_STATUS.get(change.status, "modified"),
                additions=additions,
                deletions=deletions,
                patch=kept,
            )
        )
    return "".join(file.patch for file in files) or None, tuple(files)


def _count_lines(git: Git, before: str, after: str) -> dict[bytes, tuple[int, int]]:
    output = git.run("diff-tree", "-r", "-z", "--numstat", "--no-renames", before, after)
    counts = {}
    for line in filter(None, output.split(b"\0")):
        added, deleted, path = line.split(b"\t", 2)
        counts[path] = (_number(added), _number(deleted))
    return counts


def _number(digits: bytes) -> int:
    """A count of lines. A file that is no text has none."""
    return int(digits) if digits.isdigit() else 0


def _patches(git: Git, before: str, after: str) -> dict[bytes, str]:
    """The patch of each file; empty if all of them together are too long.

    No line of a patch begins like its header, because content stands behind one more character.
    """
    arguments = ("-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    try:
        output = git.run("diff-tree", *arguments, before, after, bytes_max=16 << 20)
    except GitFailed:
        return {}
    parts = (b"\n" + output).split(b"\ndiff --git ")[1:]
    texts = [("diff --git " + part.decode(errors="replace")).rstrip("\n") + "\n" for part in parts]
    paths = [change.path for change in compare(git, before, after)]
    return dict(zip(paths, texts, strict=False)) if len(paths) == len(texts) else {}
