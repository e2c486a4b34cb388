"""Commits in memory. An unreadable commit keeps its place, with the reason."""

from typing import NamedTuple

from fairlead_eventlog.ports import Head, LogEntry, StoredCommit
from fairlead_schema.record import RecordError, claimed_seq, decode


class UnreadableCommit(NamedTuple):
    """A commit that cannot be read, and the reason."""

    position: int
    error: RecordError
    seq: int
    """The seq that the commit claims for its last event."""

    @property
    def head(self) -> Head:
        return Head(self.position, self.seq)


def parse_entry(entry: LogEntry) -> StoredCommit | UnreadableCommit:
    """The commit of an entry."""
    try:
        return StoredCommit(entry.position, decode(entry.payload), len(entry.payload))
    except RecordError as error:
        return UnreadableCommit(entry.position, error, claimed_seq(entry.payload))


def require_readable(item: StoredCommit | UnreadableCommit) -> StoredCommit:
    """The commit. Raises RecordError if it cannot be read."""
    if isinstance(item, UnreadableCommit):
        raise item.error
    return item
