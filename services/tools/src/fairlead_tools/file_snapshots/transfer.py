"""Applies changes at the destination of a move, and discards them at its source.

A note in the store says how far a transfer has come. So a transfer that died half-way goes on, one that
is done is not done again, and a person's newer file is never overwritten.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairlead_schema.subjects import Address
from fairlead_tools.file_snapshots import trees
from fairlead_tools.file_snapshots.entries import entry_now, name_paths, new_entry, old_entry
from fairlead_tools.file_snapshots.restore import RestoreFailed, restore
from fairlead_tools.file_snapshots.store import SnapshotStore
from fairlead_tools.file_snapshots.trees import TreeChange


class TransferRefused(Exception):
    """The files are as they were before. The message says why."""


@dataclass(frozen=True, slots=True)
class TransferNote:
    """How far one transfer into a worktree has come."""

    path: Path
    name: str

    def read(self) -> Literal["started", "done"] | None:
        """None: no file has changed."""
        with suppress(FileNotFoundError):
            name, _, state = self.path.read_text().partition(" ")
            if name == self.name:
                return "done" if state == "done" else "started"
        return None

    def write(self, state: Literal["started", "done"]) -> None:
        """Remember durably how far the transfer has come."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self.path.with_name(f"{self.path.name}.draft")
        with draft.open("w") as file:
            file.write(f"{self.name} {state}")
            file.flush()
            os.fsync(file.fileno())
        draft.rename(self.path)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def note_of(store: SnapshotStore, at: Address, request: int, target: str) -> TransferNote:
    """The note of one request. A later request of the same session has another name."""
    return TransferNote(store.transfer_note(at), f"{request}-{target}")


def check_destination(
    store: SnapshotStore, directory: Path, before: str, target: str
) -> list[TreeChange]:
    """The changes to apply, if every path is still as it was before. Raises TransferRefused."""
    changes = trees.compare(store.git, before, target)
    other = [change for change in changes if entry_now(directory, change.path) != old_entry(change)]
    if other:
        text = f"the destination has other files at the same paths: {name_paths(other)}"
        raise TransferRefused(text)
    return changes


def apply(
    store: SnapshotStore, directory: Path, note: TransferNote, before: str, target: str
) -> None:
    """Change the destination, once. Raises TransferRefused, and GitFailed: try again."""
    state = note.read()
    if state == "done":
        return
    if state is None:
        changes = check_destination(store, directory, before, target)
        note.write("started")
    else:
        changes = _go_on(store, directory, note, before, target)
    try:
        restore(store.git, directory, changes)
    except RestoreFailed as error:
        note.remove()
        raise TransferRefused(str(error)) from error
    note.write("done")


def discard(store: SnapshotStore, directory: Path, changed: str, kept: str) -> None:
    """Change the source to what its index keeps. A file that changed meanwhile stays.

    Raises TransferRefused after the other files have changed.
    """
    changes = trees.compare(store.git, changed, kept)
    now = {change.path: entry_now(directory, change.path) for change in changes}
    try:
        restore(
            store.git, directory, [each for each in changes if now[each.path] == old_entry(each)]
        )
    except RestoreFailed as error:
        raise TransferRefused(str(error)) from error
    newer = [each for each in changes if now[each.path] not in {old_entry(each), new_entry(each)}]
    if newer:
        raise TransferRefused(f"changed meanwhile: {name_paths(newer)}")


def _go_on(
    store: SnapshotStore, directory: Path, note: TransferNote, before: str, target: str
) -> list[TreeChange]:
    """The changes of a transfer that died. If somebody changed a file meanwhile, it is undone."""
    changes = trees.compare(store.git, before, target)
    now = {change.path: entry_now(directory, change.path) for change in changes}
    newer = [each for each in changes if now[each.path] not in {old_entry(each), new_entry(each)}]
    if not newer:
        return changes
    done = [each.reverse() for each in changes if now[each.path] == new_entry(each)]
    try:
        restore(store.git, directory, done)
    except RestoreFailed as error:
        raise TransferRefused(str(error)) from error
    note.remove()
    raise TransferRefused(f"changed meanwhile at the destination: {name_paths(newer)}")
