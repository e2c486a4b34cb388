"""What a card says about a call: its title, its lines, and what is left out while it is folded."""

import json
import re
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from fairlead_cli.chat.view.entries import CallEntry
from fairlead_cli.chat.view.plain_text import clean, one_line

FOLDED_LINES: Final = 3
UNFOLDED_LINES: Final = 2000
INPUT_LINES_MAX: Final = 2000
# The argument that says most about a call.
_SUBJECTS: Final = {
    "bash": "command",
    "read": "path",
    "write": "path",
    "edit": "path",
    "glob": "pattern",
    "grep": "pattern",
    "webfetch": "url",
    "websearch": "query",
    "skill": "name",
    "task": "description",
}
_DRAFT_SUBJECT: Final = re.compile(
    rf'"(?:{"|".join({*_SUBJECTS.values()})})"\s*:\s*"((?:[^"\\]|\\.)*)'
)
WRITTEN_MIN: Final = 200
"""A shorter input is there before anybody reads how long it is."""
_DIFF_HEADS: Final = ("--- ", "+++ ", "@@ ")
_QUIET: Final = frozenset({"read", "glob", "grep", "skill", "todowrite"})
"""Results that people seldom want to read: folded, only their size is shown."""


class CardBody(NamedTuple):
    """The lines under the title of a card."""

    lines: tuple[str, ...]
    hidden: int
    """So many lines are left out."""
    is_diff: bool = False


def card_title(call: CallEntry) -> str:
    """What the call does, in one line."""
    if call.state == "writing":
        return _draft_title(call.draft)
    given = call.input
    name = _SUBJECTS.get(call.tool)
    if name is not None and isinstance(given.get(name), str):
        return one_line(given[name], 400)
    if call.tool == "question":
        questions = given.get("questions") or [{}]
        return one_line(str(questions[0].get("question", "")), 400)
    return one_line(", ".join(f"{key}={_brief(value)}" for key, value in given.items()), 400)


def _draft_title(draft: str) -> str:
    """What an unfinished input says already about its call."""
    found = _DRAFT_SUBJECT.search(draft)
    return one_line(found[1].replace("\\n", " ").replace('\\"', '"'), 400) if found else ""


def card_body(call: CallEntry, *, is_unfolded: bool) -> CardBody:
    """The lines of a card. A folded card shows the beginning, and the end of what still runs."""
    patch = _patch(call.structured) if call.state == "done" else ""
    text = call.error or patch or call.output.rstrip("\n")
    lines = text.split("\n") if text else []
    if call.child_line and not call.ended:
        lines = [call.child_line]
    if is_unfolded:
        lines = lines if patch or call.tool == "question" else _input(call) + lines
        return CardBody(tuple(lines[:UNFOLDED_LINES]), len(lines[UNFOLDED_LINES:]), bool(patch))
    if call.tool in _QUIET and call.state == "done":
        return CardBody((), len(lines), is_diff=False)
    if patch and not call.error:
        lines = [line for line in lines if not line.startswith(_DIFF_HEADS)]
    hidden = max(0, len(lines) - FOLDED_LINES)
    shown = lines[:FOLDED_LINES] if call.ended else lines[-FOLDED_LINES:]
    return CardBody(tuple(shown), hidden, bool(patch))


def _input(call: CallEntry) -> list[str]:
    """The input of a call, unless its title says all of it."""
    subject = call.input.get(_SUBJECTS.get(call.tool, ""))
    is_whole = isinstance(subject, str) and card_title(call) == clean(subject)
    return input_lines(call.input, without={str(subject)} if is_whole else ())


def input_lines(given: dict[str, Any], *, without: Collection[str] = ()) -> list[str]:
    """The arguments of a call, except for texts that are shown elsewhere."""
    lines: list[str] = []
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if text in without:
            continue
        first, *more = clean(text).rstrip("\n").split("\n")
        label = f"{clean(name)}:"
        lines += (
            [label, f"  {first}", *(f"  {line}" for line in more)] if more else [f"{label} {first}"]
        )
    left = len(lines) - INPUT_LINES_MAX
    return [*lines[:INPUT_LINES_MAX], f"… {left} more lines"] if left > 0 else lines


def duration(call: CallEntry, now_ms: int) -> str:
    """How long the call took, or has taken; empty for less than a second."""
    if not call.began:
        return ""
    seconds = ((call.ended or now_ms) - call.began) / 1000
    if seconds < 1:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


def _patch(structured: dict[str, Any]) -> str:
    """The changes of the files that the call changed."""
    files = structured.get("files")
    if not isinstance(files, list):
        return ""
    patches = [str(file["patch"]) for file in files if isinstance(file, dict) and file.get("patch")]
    return clean("\n".join(patches)).strip("\n")


def _brief(value: object) -> str:
    return one_line(value if isinstance(value, str) else repr(value), 60)
