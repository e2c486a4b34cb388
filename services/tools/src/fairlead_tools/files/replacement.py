"""Exact replacement in a text, with either kind of line ending."""

import re
from typing import Final

BOM: Final = "\ufeff"


class NotReplaced(Exception):
    """Why a text is not changed, as a message for the model."""


def check_replacement(old: str, new: str) -> None:
    """Check a replacement without looking at the file. Raises NotReplaced."""
    if not old:
        raise NotReplaced("oldString must not be empty; use write to create or overwrite a file")
    if old == new:
        raise NotReplaced("oldString and newString are the same; there is nothing to change")


def replace_text(text: str, old: str, new: str, *, everywhere: bool) -> tuple[str, int]:
    """Replace one occurrence, or all. Returns the text and the number. Raises NotReplaced.

    A line break in `old` matches either kind. A line break in `new` becomes the kind that it
    replaces, or else the usual kind of the text.
    """
    check_replacement(old, new)
    bare, mark = text.removeprefix(BOM), BOM if text.startswith(BOM) else ""
    pattern = re.compile("\r?\n".join(map(re.escape, _lf(old).split("\n"))))
    count = sum(1 for _ in pattern.finditer(bare))
    if not count:
        raise NotReplaced("oldString was not found in the file; it must match exactly")
    if count > 1 and not everywhere:
        raise NotReplaced(
            f"oldString was found {count} times; add lines around it to make it unique,"
            " or set replaceAll"
        )
    usual = _usual_line_ending(bare)
    result = pattern.sub(
        lambda match: _with_line_ending(new, _usual_line_ending(match[0]) or usual), bare
    )
    return mark + result.removeprefix(BOM), count


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _usual_line_ending(text: str) -> str | None:
    """The more frequent line break of a text; None without line breaks."""
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    return None if crlf == lf == 0 else "\r\n" if crlf > lf else "\n"


def _with_line_ending(text: str, ending: str | None) -> str:
    return text if ending is None else _lf(text).replace("\n", ending)
