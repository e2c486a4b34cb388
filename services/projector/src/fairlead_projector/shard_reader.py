"""Follows a shard, reading ahead, says when it is quiet, and begins again when it is too quiet."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import LogEntry
from fairlead_service.supervise import cancel_and_wait

log = logging.getLogger(__name__)

QUIET_S: Final = 2.0
PATIENCE_MAX: Final = 32


@asynccontextmanager
async def following(
    eventlog: EventLog, shard: int, *, after: int, reader: str, linger_s: float = 0.0
) -> AsyncIterator[AsyncIterator[Sequence[LogEntry]]]:
    """A shard's batches, and an empty one whenever nothing came for a while.

    Batches come at least `linger_s` apart: the first of a burst at once, the rest together.
    """
    follower = _Follower(eventlog, shard, after, reader, linger_s)
    batches = follower.batches()
    try:
        yield batches
    finally:
        await batches.aclose()
        await follower.close()


class _Follower:
    """One reader of a shard. A restarted server forgets readers without telling them."""

    def __init__(
        self, eventlog: EventLog, shard: int, after: int, reader: str, linger_s: float
    ) -> None:
        self._shards = eventlog.shards
        self._shard = shard
        self._reader = reader
        self._linger_s = linger_s
        self._position = after
        self._source: AsyncIterator[Sequence[LogEntry]]
        self._coming: asyncio.Task[Sequence[LogEntry]]
        self._open()

    async def batches(self) -> AsyncGenerator[Sequence[LogEntry], None]:
        promised, quiet, patience = 0, 0, 1
        while True:
            done, _waiting = await asyncio.wait({self._coming}, timeout=QUIET_S)
            if done:
                entries = self._coming.result()
                self._position = entries[-1].position
                promised, quiet, patience = 0, 0, 1
                # The next batch is on its way while its reader works on this one.
                self._coming = asyncio.create_task(_next(self._source, self._linger_s))
                yield entries
                continue
            yield ()
            quiet += 1
            if promised > self._position and quiet > patience:
                log.info("following again", extra={"shard": self._shard, "reader": self._reader})
                await self.close()
                self._open()
                quiet, patience = 0, min(patience * 2, PATIENCE_MAX)
            promised = await self._shards.last_position(self._shard)

    async def close(self) -> None:
        await cancel_and_wait(self._coming)
        if isinstance(self._source, AsyncGenerator):
            await self._source.aclose()

    def _open(self) -> None:
        self._source = self._shards.follow(self._shard, after=self._position, reader=self._reader)
        self._coming = asyncio.create_task(_next(self._source, 0.0))


async def _next(batches: AsyncIterator[Sequence[LogEntry]], linger_s: float) -> Sequence[LogEntry]:
    await asyncio.sleep(linger_s)
    return await anext(batches)
