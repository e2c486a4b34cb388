"""Shortens a conversation until a model with a small window can summarise it.

A switch to a smaller model may leave a history that fits no request of that model, and so no request
for a summary either. The longest entries lose their ends first, then the middle entries are left out.
"""

from typing import Final

from fairlead_session.compaction.estimate import text_units
from fairlead_session.compaction.serialise import BETWEEN, join_entries

# An entry that is shortened keeps at least this many characters.
ENTRY_LENGTH_MIN: Final = 400
_NOTE_LENGTH: Final = 60


def fit_entries(entries: tuple[str, ...], units_max: int) -> tuple[str, ...]:
    """The entries, shortened to so many units of UTF-16 when they are joined. Empty if not even the newest one fits."""
    if not entries or text_units(join_entries(entries)) <= units_max:
        return entries
    cap = _largest_cap(entries, units_max)
    if cap >= ENTRY_LENGTH_MIN:
        return tuple(_shorten_entry(text, cap) for text in entries)
    return _leave_out_middle(
        tuple(_shorten_entry(text, ENTRY_LENGTH_MIN) for text in entries), units_max
    )


def _largest_cap(entries: tuple[str, ...], length_max: int) -> int:
    """How long an entry may be, so that all of them have room. Short entries leave room to others."""
    room = length_max
    lengths = sorted(_length(text) for text in entries)
    for index, length in enumerate(lengths):
        share = room // (len(lengths) - index)
        if length > share:
            return share - _NOTE_LENGTH
        room -= length
    return max(lengths, default=0)


def _leave_out_middle(entries: tuple[str, ...], length_max: int) -> tuple[str, ...]:
    """The first entry, which often names the task, a note, and the newest entries that fit."""
    first, *others = entries
    room = length_max - _length(first) - _NOTE_LENGTH
    kept: list[str] = []
    for text in reversed(others):
        room -= _length(text)
        if room < 0:
            break
        kept.append(text)
    if not kept:
        return ()
    omitted = len(others) - len(kept)
    return (first, f"[{omitted} entries were left out here]", *reversed(kept))


def _shorten_entry(text: str, cap: int) -> str:
    if _length(text) <= cap + _NOTE_LENGTH:
        return text
    # A character outside the basic plane counts twice, so a cut text may be shorter than the cap.
    kept = text[: cap * len(text) // text_units(text)]
    return f"{kept}\n[{len(text) - len(kept)} more characters were left out]"


def _length(text: str) -> int:
    """The units of an entry, with the blank line behind it."""
    return text_units(text) + len(BETWEEN)
