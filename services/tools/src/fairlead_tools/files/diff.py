"""A unified diff of a changed text, bounded in work and size."""

import difflib
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel

from fairlead_tools.files.patch import Add, Delete, Hunk, Update

CONTEXT_LINES: Final = 3
PATCH_LENGTH_MAX: Final = 50_000
# With more lines on a side, the changed middle is shown as one replacement.
_COMPARED_MAX: Final = 500

Status: TypeAlias = Literal["added", "modified", "deleted"]


class FileDiff(BaseModel):
    """One changed file."""

    file: str
    status: Status
    patch: str
    additions: int
    deletions: int


def diff(resource: str, before: str | None, after: str | None) -> FileDiff:
    """The diff of one file. None stands for a missing file."""
    lines = list(_lines(_split(before or ""), _split(after or "")))
    patch = _shorten(f"--- {resource}\n+++ {resource}\n" + "".join(lines))
    return FileDiff(
        file=resource,
        status="added" if before is None else "deleted" if after is None else "modified",
        patch=patch,
        additions=sum(line.startswith("+") for line in lines),
        deletions=sum(line.startswith("-") for line in lines),
    )


def preview_patch(hunks: Iterable[Hunk]) -> str:
    """What a patch says that it changes, without a look at any file: line numbers begin anew."""
    return _shorten("".join(map(_preview, hunks)))


def _preview(hunk: Hunk) -> str:
    match hunk:
        case Add():
            return diff(hunk.path, None, hunk.content).patch
        case Delete():
            return f"--- {hunk.path}\n+++ /dev/null\n"
        case Update():
            diffs = [diff(hunk.path, *map(_text, (chunk.old, chunk.new))) for chunk in hunk.chunks]
            bodies = [one.patch.split("\n", 2)[2] for one in diffs]
            return f"--- {hunk.path}\n+++ {hunk.to or hunk.path}\n" + "".join(bodies)


def _text(lines: tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _shorten(patch: str) -> str:
    if len(patch) <= PATCH_LENGTH_MAX:
        return patch
    return patch[:PATCH_LENGTH_MAX] + "\n... (diff cut)\n"


def _split(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def _lines(old: list[str], new: list[str]) -> Iterator[str]:
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    first = max(0, head - CONTEXT_LINES)
    old_end, new_end = (max(head, len(side) - tail) for side in (old, new))
    middle = (old[first : old_end + CONTEXT_LINES], new[first : new_end + CONTEXT_LINES])
    if max(map(len, middle)) <= _COMPARED_MAX:
        diff_lines = difflib.unified_diff(*middle, n=CONTEXT_LINES, lineterm="")
        for line in list(diff_lines)[2:]:
            yield (_shift_header(line, first) if line.startswith("@@") else line) + "\n"
        return
    removed, added = old[head:old_end], new[head:new_end]
    yield f"@@ -{head + 1},{len(removed)} +{head + 1},{len(added)} @@\n"
    yield from (f"-{line}\n" for line in removed)
    yield from (f"+{line}\n" for line in added)


def _common(old: list[str], new: list[str]) -> int:
    """How many lines at the start are equal."""
    pairs = zip(old, new, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def _shift_header(header: str, by: int) -> str:
    """The header of a hunk with line numbers of the whole file instead of the compared part."""
    _, old, new, _ = header.split(" ")
    return f"@@ {_shift_span(old, by)} {_shift_span(new, by)} @@"


def _shift_span(span: str, by: int) -> str:
    start, *length = span[1:].split(",")
    return ",".join((f"{span[0]}{int(start) + by}", *length))
