"""Wildcard patterns of permission rules, matched in time that grows linearly with the text.

A pattern is cut at its stars into segments. The first segment must begin the text, the last must end
it, and each segment between them is taken where it first occurs. A later occurrence never helps, so
nothing is tried twice.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

ARGUMENT: Final = " *"


@dataclass(frozen=True, slots=True)
class _Segment:
    """The text between two stars. `?` fits any one character."""

    text: str
    masks: dict[str, int] | None
    """For each character the places where it fits, as bits; None for a segment without `?`."""
    anywhere: int
    """The places of `?`, as bits."""

    def fits_at(self, text: str, start: int) -> bool:
        if self.masks is None:
            return text.startswith(self.text, start)
        part = text[start : start + len(self.text)]
        return len(part) == len(self.text) and all(
            own in {"?", other} for own, other in zip(self.text, part, strict=True)
        )

    def find(self, text: str, start: int, end: int) -> int:
        """Where the segment first occurs between two places; -1 without such a place."""
        if self.masks is None:
            return text.find(self.text, start, end)
        # One step for each character, for all places of the segment at once (shift-and).
        found, last = 0, 1 << (len(self.text) - 1)
        for place in range(start, end):
            found = ((found << 1) | 1) & (self.masks.get(text[place], 0) | self.anywhere)
            if found & last:
                return place - len(self.text) + 1
        return -1


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches: `*` is any text, `?` one character. Slashes are equal.

    A pattern that ends in space and star also fits without that argument.
    """
    normal = text.replace("\\", "/")
    return any(_fits(segments, normal) for segments in _alternatives(pattern))


def has_wildcard(pattern: str) -> bool:
    """Whether a pattern fits more than one text."""
    return "*" in pattern or "?" in pattern


def _fits(segments: tuple[_Segment, ...], text: str) -> bool:
    first, last = segments[0], segments[-1]
    if len(segments) == 1:
        return len(text) == len(first.text) and first.fits_at(text, 0)
    place, end = len(first.text), len(text) - len(last.text)
    if end < place or not first.fits_at(text, 0) or not last.fits_at(text, end):
        return False
    for segment in segments[1:-1]:
        found = segment.find(text, place, end)
        if found < 0:
            return False
        place = found + len(segment.text)
    return True


@lru_cache(maxsize=4096)
def _alternatives(pattern: str) -> tuple[tuple[_Segment, ...], ...]:
    normal = pattern.replace("\\", "/")
    if not normal.endswith(ARGUMENT):
        return (_segments(normal),)
    return (_segments(normal), _segments(normal.removesuffix(ARGUMENT)))


def _segments(pattern: str) -> tuple[_Segment, ...]:
    first, *others = pattern.split("*")
    if not others:
        return (_segment(first),)
    *middle, last = others
    return (_segment(first), *(_segment(text) for text in middle if text), _segment(last))


def _segment(text: str) -> _Segment:
    if "?" not in text:
        return _Segment(text, None, 0)
    masks: dict[str, int] = {}
    for index, character in enumerate(text):
        masks[character] = masks.get(character, 0) | 1 << index
    return _Segment(text, masks, masks.pop("?"))
