"""Follows a shard of the log, reads ahead, and subscribes again if the server has lost the reader."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import BATCH_BYTES, LogEntry
from fairlead_service.supervise import cancel_and_wait

log = logging.getLogger(__name__)

Verify: TypeAlias = Callable[[], Awaitable[None]]

QUIET_S: Final = 2.0
QUIET_PERIODS_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class ReadPace:
    """How a reader follows a shard."""

    linger_s: float = 0.0
    """Between two batches: the first of a burst comes at once, the rest together."""
    quiet_s: float = QUIET_S
    """After this time without entries the reader yields an empty batch."""
    bytes_max: int = BATCH_BYTES
    """Of a batch, unless one entry is larger."""


@asynccontextmanager
async def follow_shard(
    eventlog: EventLog,
    shard: int,
    *,
    after: int,
    reader: str,
    pace: ReadPace = ReadPace(),  # noqa: B008 - a frozen value
    verify: Verify | None = None,
) -> AsyncIterator[AsyncIterator[Sequence[LogEntry]]]:
    """Yield the batches of a shard, and an empty batch whenever nothing came for a while.

    `verify` raises if the log is another one: the server loses its readers when it is restored.
    """
    shard_reader = _ShardReader(eventlog, shard, after, reader, pace)
    batches = shard_reader.batches(verify)
    try:
        yield batches
    finally:
        await batches.aclose()
        await shard_reader.close()


class _ShardReader:
    """One reader of a shard. A restarted server forgets its readers without notice."""

    def __init__(
        self, eventlog: EventLog, shard: int, after: int, reader: str, pace: ReadPace
    ) -> None:
        self._shards = eventlog.shards
        self._shard = shard
        self._reader = reader
        self._pace = pace
        self._position = after
        self._source: AsyncIterator[Sequence[LogEntry]]
        self._upcoming: asyncio.Task[Sequence[LogEntry]]
        self._open()

    async def batches(self, verify: Verify | None) -> AsyncGenerator[Sequence[LogEntry], None]:
        end, quiet, quiet_max = 0, 0, 1
        while True:
            done, _pending = await asyncio.wait({self._upcoming}, timeout=self._pace.quiet_s)
            if done:
                entries = self._upcoming.result()
                self._position = entries[-1].position
                end, quiet, quiet_max = 0, 0, 1
                # Read the next batch while the caller works on this one.
                self._upcoming = asyncio.create_task(_next_batch(self._source, self._pace.linger_s))
                yield entries
                continue
            yield ()
            quiet += 1
            if end > self._position and quiet > quiet_max:
                # The shard has entries that did not come: the server has lost this reader.
                log.info(
                    "shard reader got no entries: it subscribes again",
                    extra={"shard": self._shard, "reader": self._reader},
                )
                await self.close()
                if verify is not None:
                    await verify()
                self._open()
                quiet, quiet_max = 0, min(quiet_max * 2, QUIET_PERIODS_MAX)
            end = await self._shards.last_position(self._shard)

    async def close(self) -> None:
        await cancel_and_wait(self._upcoming)
        if isinstance(self._source, AsyncGenerator):
            await self._source.aclose()

    def _open(self) -> None:
        self._source = self._shards.follow(
            self._shard, after=self._position, reader=self._reader, bytes_max=self._pace.bytes_max
        )
        self._upcoming = asyncio.create_task(_next_batch(self._source, 0.0))


async def _next_batch(
    batches: AsyncIterator[Sequence[LogEntry]], linger_s: float
) -> Sequence[LogEntry]:
    await asyncio.sleep(linger_s)
    return await anext(batches)
