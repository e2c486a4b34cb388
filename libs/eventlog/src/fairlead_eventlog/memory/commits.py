"""Commits as the twin keeps them: one that cannot be read stays in its place, with the reason."""

from typing import NamedTuple

from fairlead_eventlog.ports import Entry, Stored
from fairlead_schema.record import RecordError, decode


class Unreadable(NamedTuple):
    """A commit that cannot be read, and why."""

    position: int
    error: RecordError


def opened(entry: Entry) -> Stored | Unreadable:
    """What an entry holds."""
    try:
        return Stored(entry.position, decode(entry.payload))
    except RecordError as error:
        return Unreadable(entry.position, error)


def readable(item: Stored | Unreadable) -> Stored:
    """The commit. Raises RecordError if it cannot be read."""
    if isinstance(item, Unreadable):
        raise item.error
    return item
