"""Exact replacement in a text, blind to how its lines end."""

import re
from typing import Final

BOM: Final = "\ufeff"


class NotReplaced(Exception):
    """Why a text is not changed, in words for the model."""


def check_replacement(old: str, new: str) -> None:
    """What is wrong with a replacement whatever the file holds. Raises NotReplaced."""
    if not old:
        raise NotReplaced("oldString must not be empty; use write to create or overwrite a file")
    if old == new:
        raise NotReplaced("oldString and newString are the same; there is nothing to change")


def replace_text(text: str, old: str, new: str, *, everywhere: bool) -> tuple[str, int]:
    """The text with one occurrence replaced, or each, and how many. Raises NotReplaced.

    A line break in `old` finds either kind; those of `new` become what they replace, or what the
    text mostly has.
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
    made = pattern.sub(
        lambda found: _with_line_ending(new, _usual_line_ending(found[0]) or usual), bare
    )
    return mark + made.removeprefix(BOM), count


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _usual_line_ending(text: str) -> str | None:
    """The line break that a text mostly has, if it has any."""
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    return None if crlf == lf == 0 else "\r\n" if crlf > lf else "\n"


def _with_line_ending(text: str, ending: str | None) -> str:
    return text if ending is None else _lf(text).replace("\n", ending)
