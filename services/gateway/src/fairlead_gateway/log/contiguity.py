"""Reads a session's log up to the first place that cannot be read, and never beyond it."""

import asyncio
from collections.abc import AsyncIterator

from fairlead_eventlog.ports import START, CommitPage, Head, SessionLog, StoredCommit
from fairlead_eventlog.replicas.commit_order import CommitOrder
from fairlead_gateway.http.sse import auto_close
from fairlead_schema.errors import SessionUnreadable
from fairlead_schema.record import MalformedCommit, RecordError
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait


def next_seq(seq: int, stored: StoredCommit) -> int:
    """The last event of a commit that follows event `seq`. Raises MalformedCommit for a gap."""
    if stored.is_purge:
        return stored.head.seq  # What came before it may be erased or unreadable.
    for expected, recorded in enumerate(stored.commit.events, start=seq + 1):
        if recorded.seq != expected:
            raise MalformedCommit(f"expected event {expected}, found {recorded.seq}")
    return stored.head.seq


async def read_contiguous(
    log: SessionLog, at: Address, *, after: Head, limit: int, reach: int, ahead: bool = False
) -> AsyncIterator[StoredCommit]:
    """The commits after a head, at least up to position `reach`, without exact repeats.

    A replica that lags is read again until it has that position. Raises SessionUnreadable where a
    commit cannot be read or cannot follow. With `ahead` the next page is under way meanwhile.
    """
    order = CommitOrder(log, at, after)
    pages = _read_pages(log, at, after=after, limit=limit, reach=reach, ahead=ahead)
    try:
        async with auto_close(pages):
            async for page in pages:
                for stored in page.commits:
                    if await order.accept(stored):
                        yield stored
    except RecordError as error:
        raise SessionUnreadable(order.head.seq + 1, str(error)) from error


async def _read_pages(
    log: SessionLog, at: Address, *, after: Head, limit: int, reach: int, ahead: bool
) -> AsyncIterator[CommitPage]:
    async def read(head: Head) -> CommitPage:
        return await log.read(at, after=head, limit=limit, reach=reach)

    page, coming = await read(after), None
    try:
        while page.commits or page.more:
            after = page.commits[-1].head if page.commits else after
            if page.more and ahead:
                coming = asyncio.ensure_future(read(after))
            yield page
            if not page.more:
                return
            page = await (coming or read(after))
    finally:
        if coming is not None:
            await cancel_and_wait(coming)


async def locate_readable(log: SessionLog, at: Address, seq: int) -> Head:
    """A head at or before event `seq`; the beginning if the search meets what cannot be read."""
    try:
        return await log.locate(at, seq)
    except RecordError:
        return START
