"""The files and lines that the tools of a session have changed, by their own counts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fairlead_schema.session_info import ChangeSummary

FILES_MAX: Final = 500
"""So many files are told apart. Lines of further files still count."""


class FileChange(NamedTuple):
    """One file that a call has changed."""

    file: str
    additions: int
    deletions: int


@dataclass(frozen=True)
class FileChanges:
    """All changes of a session. A file that changed twice is one file."""

    files: tuple[str, ...] = ()
    additions: int = 0
    deletions: int = 0
    more: bool = False


def changes_after(changes: FileChanges, tool: str, structured: Mapping[str, Any]) -> FileChanges:
    """The changes after a call has succeeded. A tool that changes no files leaves them as they are."""
    for change in _file_changes(tool, structured):
        known = change.file in changes.files
        full = len(changes.files) >= FILES_MAX
        changes = FileChanges(
            changes.files if known or full else (*changes.files, change.file),
            changes.additions + change.additions,
            changes.deletions + change.deletions,
            changes.more or (full and not known),
        )
    return changes


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
