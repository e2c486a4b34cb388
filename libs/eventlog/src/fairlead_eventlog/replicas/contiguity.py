"""Reads a session's log up to the first place that cannot be read, and never beyond it."""

from collections.abc import AsyncGenerator

from fairlead_eventlog.ports import START, Head, SessionLog, StoredCommit
from fairlead_eventlog.replicas.commit_order import CommitOrder
from fairlead_schema.errors import SessionUnreadable
from fairlead_schema.record import MalformedCommit, RecordError
from fairlead_schema.subjects import Address


def next_seq(seq: int, stored: StoredCommit) -> int:
    """The last event of a commit that follows event `seq`. Raises MalformedCommit for a gap."""
    if stored.is_purge:
        return stored.head.seq  # What came before it may be erased or unreadable.
    for expected, recorded in enumerate(stored.commit.events, start=seq + 1):
        if recorded.seq != expected:
            raise MalformedCommit(f"expected event {expected}, found {recorded.seq}")
    return stored.head.seq


async def read_contiguous(
    log: SessionLog, at: Address, *, after: Head, limit: int, reach: int
) -> AsyncGenerator[StoredCommit, None]:
    """The commits after a head, at least up to position `reach`, without exact repeats.

    A replica that lags is read again until it has that position. Raises SessionUnreadable where a
    commit cannot be read or cannot follow.
    """
    order, more = CommitOrder(log, at, after), True
    try:
        while more:
            page = await log.read(at, after=after, limit=limit, reach=reach)
            for stored in page.commits:
                after = stored.head
                if await order.accept(stored):
                    yield stored
            more = page.more
    except RecordError as error:
        raise SessionUnreadable(order.head.seq + 1, str(error)) from error


async def locate_readable(log: SessionLog, at: Address, seq: int) -> Head:
    """A head at or before event `seq`; the beginning if the search meets what cannot be read."""
    try:
        return await log.locate(at, seq)
    except RecordError:
        return START
