"""Reads a session's log up to the first place that cannot be read, and never beyond it."""

from collections.abc import AsyncGenerator

from fairlead_eventlog.ports import START, Head, LogEntry, SessionLog, StoredCommit
from fairlead_eventlog.replicas.commit_order import CommitOrder
from fairlead_schema.errors import SessionUnreadable
from fairlead_schema.raw_records.raw_commit import RawCommit
from fairlead_schema.raw_records.raw_decoder import decode_raw
from fairlead_schema.record import MalformedCommit, RecordError, decode
from fairlead_schema.subjects import Address


def next_seq(seq: int, stored: StoredCommit) -> int:
    """The last event of a commit that follows event `seq`. Raises MalformedCommit for a gap."""
    if stored.ends_log:
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


async def read_raw(
    log: SessionLog, at: Address, *, after: Head, limit: int, reach: int
) -> AsyncGenerator[RawCommit, None]:
    """The same as `read_contiguous`, with events as JSON: much faster for who shows them only."""
    order, position, more = CommitOrder(log, at, after), after.position, True
    try:
        while more:
            page = await log.read_entries(at, after=position, limit=limit, reach=reach)
            for entry in page.entries:
                position = entry.position
                if (commit := await decode_next(order, entry)) is not None:
                    yield commit
            more = page.more
    except RecordError as error:
        raise SessionUnreadable(order.head.seq + 1, str(error)) from error


async def decode_next(order: CommitOrder, entry: LogEntry) -> RawCommit | None:
    """The commit of an entry; None if it repeats an earlier one. Raises RecordError."""
    commit = decode_raw(entry.payload)
    if not order.accept_next(entry, commit):
        stored = StoredCommit(entry.position, decode(entry.payload), len(entry.payload))
        if not await order.accept(stored):
            return None
    return commit


async def locate_readable(log: SessionLog, at: Address, seq: int) -> Head:
    """A head at or before event `seq`; the beginning if the search meets what cannot be read."""
    try:
        return await log.locate(at, seq)
    except RecordError:
        return START
