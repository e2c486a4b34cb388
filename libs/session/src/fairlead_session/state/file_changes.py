"""The files and lines that the tools of a session have changed, by their own counts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from fairlead_schema.session_info import ChangeSummary

FILES_MAX: Final = 500
"""So many files are told apart. Lines of further files still count."""


class FileChange(NamedTuple):
    """One file that a call has changed."""

    file: str
    additions: int
    deletions: int


class MessageChanges(NamedTuple):
    """The lines that the calls of one message changed, and how many files had changed before it."""

    seq: int
    """The sequence of the event that created the message."""
    files_before: int
    additions: int
    deletions: int


@dataclass(frozen=True)
class FileChanges:
    """All changes of a session. A file that changed twice is one file."""

    files: tuple[str, ...] = ()
    additions: int = 0
    deletions: int = 0
    more: bool = False
    messages: tuple[MessageChanges, ...] = ()
    """The changes that a revert can take away: those since the last compaction."""


def changes_after(
    changes: FileChanges, tool: str, structured: Mapping[str, Any], *, message_seq: int
) -> FileChanges:
    """The changes after a call has succeeded. A tool that changes no files leaves them as they are."""
    for change in _file_changes(tool, structured):
        known = change.file in changes.files
        full = len(changes.files) >= FILES_MAX
        changes = FileChanges(
            changes.files if known or full else (*changes.files, change.file),
            changes.additions + change.additions,
            changes.deletions + change.deletions,
            changes.more or (full and not known),
            _add_to_message(changes, message_seq, change),
        )
    return changes


def changes_through(changes: FileChanges, seq: int) -> FileChanges:
    """The changes of messages up to this sequence, after a revert removed the others."""
    removed = [message for message in changes.messages if message.seq > seq]
    if not removed:
        return changes
    files = changes.files[: min(message.files_before for message in removed)]
    return FileChanges(
        files,
        changes.additions - sum(message.additions for message in removed),
        changes.deletions - sum(message.deletions for message in removed),
        changes.more and len(files) == FILES_MAX,
        tuple(message for message in changes.messages if message.seq <= seq),
    )


def settle_changes(changes: FileChanges) -> FileChanges:
    """The changes after a compaction: no revert goes back behind it."""
    return replace(changes, messages=()) if changes.messages else changes


def change_summary(changes: FileChanges) -> ChangeSummary | None:
    """The changes as readers see them; None if nothing was changed."""
    if not changes.files:
        return None
    return ChangeSummary(
        files=len(changes.files),
        additions=changes.additions,
        deletions=changes.deletions,
        more=changes.more or None,
    )


def _add_to_message(
    changes: FileChanges, seq: int, change: FileChange
) -> tuple[MessageChanges, ...]:
    last = changes.messages[-1] if changes.messages else None
    if last is None or last.seq != seq:
        added = MessageChanges(seq, len(changes.files), change.additions, change.deletions)
        return (*changes.messages, added)
    additions, deletions = last.additions + change.additions, last.deletions + change.deletions
    return (*changes.messages[:-1], MessageChanges(seq, last.files_before, additions, deletions))


def _file_changes(tool: str, structured: Mapping[str, Any]) -> Iterator[FileChange]:
    """The changes in the result of a call. A result of another shape has none."""
    match tool, structured:
        case "write", {"resource": str(file)}:
            yield FileChange(file, _count(structured, "additions"), _count(structured, "deletions"))
        case (("edit" | "apply_patch"), {"files": [*files]}):
            for changed in files:
                match changed:
                    case {"file": str(file)}:
                        counts = _count(changed, "additions"), _count(changed, "deletions")
                        yield FileChange(file, *counts)
                    case _:
                        pass
        case _:
            pass


def _count(change: Mapping[str, Any], field: str) -> int:
    count = change.get(field)
    return count if isinstance(count, int) and count > 0 else 0
