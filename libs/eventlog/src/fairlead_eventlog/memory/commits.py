"""Commits in memory. An unreadable commit keeps its place, with the reason."""

from typing import NamedTuple

from fairlead_eventlog.ports import LogEntry, StoredCommit
from fairlead_schema.record import RecordError, decode


class UnreadableCommit(NamedTuple):
    """A commit that cannot be read, and the reason."""

    position: int
    error: RecordError


def parse_entry(entry: LogEntry) -> StoredCommit | UnreadableCommit:
    """The commit of an entry."""
    try:
        return StoredCommit(entry.position, decode(entry.payload))
    except RecordError as error:
        return UnreadableCommit(entry.position, error)


def require_readable(item: StoredCommit | UnreadableCommit) -> StoredCommit:
    """The commit. Raises RecordError if it cannot be read."""
    if isinstance(item, UnreadableCommit):
        raise item.error
    return item
