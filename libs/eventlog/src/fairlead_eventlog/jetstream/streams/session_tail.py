"""Follows one session: its log up to the leader's end, then each new commit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.streams.commit_broadcasts import parse_broadcast
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.ports import Head, SessionLog, StoredCommit
from fairlead_eventlog.replicas.commit_order import CommitOrder, decode_commit
from fairlead_schema import subjects
from fairlead_schema.subjects import Address

TAIL_BUFFER: Final = 256
# A quiet tail reads the log this often, in case a broadcast was lost.
TAIL_LOOK_S: Final = 30.0


class SessionTail:
    """One reader of one session. Broadcasts bring new commits, and the log fills every gap."""

    def __init__(self, link: NatsLink, log: SessionLog, at: Address) -> None:
        self._link = link
        self._log = log
        self._at = at
        self._broadcasts: asyncio.Queue[InboundMessage | None] = asyncio.Queue(TAIL_BUFFER)

    async def commits(self, *, after: int) -> AsyncIterator[StoredCommit]:
        """Every commit with events after seq `after`, then each new commit, for ever.

        Raises RecordError at a commit that cannot be read or cannot follow.
        """
        subscription = await self._link.listen(subjects.commit(self._at), self._receive)
        unregister = self._link.on_reconnect(self._look_again)
        try:
            order = CommitOrder(self._log, self._at, await self._log.locate(self._at, after))
            # The first look reads the log, because broadcasts come from now on only.
            msg: InboundMessage | None = None
            while True:
                async for stored in self._commits_of(order.head, msg):
                    is_news = await order.is_news(stored, after=after)
                    if await order.accept(stored) and is_news:
                        yield stored
                msg = await self._next()
        finally:
            unregister()
            with suppress(Exception):
                await subscription.unsubscribe()

    def _receive(self, msg: InboundMessage) -> None:
        # A full buffer drops the broadcast. The next one shows the gap, and the log fills it.
        with suppress(asyncio.QueueFull):
            self._broadcasts.put_nowait(msg)

    def _look_again(self) -> None:
        with suppress(asyncio.QueueFull):
            self._broadcasts.put_nowait(None)

    async def _next(self) -> InboundMessage | None:
        """The next broadcast; None after a reconnection and after a quiet time: look at the log."""
        # Not wait_for: on Python 3.11 it can swallow a cancellation.
        try:
            async with asyncio.timeout(TAIL_LOOK_S):
                return await self._broadcasts.get()
        except TimeoutError:
            return None

    async def _commits_of(
        self, head: Head, msg: InboundMessage | None
    ) -> AsyncIterator[StoredCommit]:
        """The commit of a broadcast; all commits since `head` if an earlier broadcast was missed."""
        hint = None if msg is None else parse_broadcast(msg)
        if hint is None:
            reach = await self._log.last_commit_position(self._at)
        elif hint.position <= head.position:
            return
        elif hint.previous == head.position:
            yield decode_commit(hint)
            return
        else:
            reach = hint.position
        while head.position < reach:
            page = await self._log.read(self._at, after=head, reach=reach)
            for stored in page.commits:
                yield stored
                head = stored.head
            if not page.more:
                return
