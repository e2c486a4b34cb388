"""Exact replacement in a text, with either kind of line ending, in time linear in the text."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

BOM: Final = "\ufeff"
_CRLF: Final = re.compile("\r\n")


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
    places = list(_places(bare, old))
    count = len(places)
    if not count:
        raise NotReplaced("oldString was not found in the file; it must match exactly")
    if count > 1 and not everywhere:
        raise NotReplaced(
            f"oldString was found {count} times; add lines around it to make it unique,"
            " or set replaceAll"
        )
    usual = _usual_line_ending(bare)
    pieces, end = list[str](), 0
    for start, stop in places:
        ending = _usual_line_ending(bare[start:stop]) or usual
        pieces += (bare[end:start], _with_line_ending(new, ending))
        end = stop
    result = "".join((*pieces, bare[end:]))
    return mark + result.removeprefix(BOM), count


def _places(text: str, old: str) -> Iterator[tuple[int, int]]:
    """Where the old text begins and ends in a text, from left to right and without overlap.

    The search is for plain text: a pattern of many line breaks would be tried at every one of them.
    """
    plain_old = _lf(old)
    if "\r" in plain_old:
        # A carriage return that belongs to no line break is meant as it is.
        yield from ((start, start + len(old)) for start in _find_all(text, old))
        return
    plain = _lf(text)
    # Where the plain text lacks a carriage return of the text, in the plain text.
    shortened = [match.start() - at for at, match in enumerate(_CRLF.finditer(text))]
    for start in _find_all(plain, plain_old):
        stop = start + len(plain_old)
        yield start + bisect_left(shortened, start), stop + bisect_left(shortened, stop)


def _find_all(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _usual_line_ending(text: str) -> str | None:
    """The more frequent line break of a text; None without line breaks."""
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    return None if crlf == lf == 0 else "\r\n" if crlf > lf else "\n"


def _with_line_ending(text: str, ending: str | None) -> str:
    return text if ending is None else _lf(text).replace("\n", ending)
