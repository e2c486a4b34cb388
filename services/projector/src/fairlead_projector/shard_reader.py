"""Follows a shard of the log, reads ahead, and subscribes again if the server has lost the reader."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import BATCH_BYTES, LogEntry
from fairlead_service.supervise import cancel_and_wait

log = logging.getLogger(__name__)

Verify: TypeAlias = Callable[[], Awaitable[None]]

QUIET_S: Final = 2.0
QUIET_PERIODS_MAX: Final = 32
AHEAD_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class ReadPace:
    """How a reader follows a shard."""

    linger_s: float = 0.0
    """After entries were taken: the first of a burst come at once, the rest together."""
    quiet_s: float = QUIET_S
    """After this time without entries a reader says that its shard is quiet."""
    ahead_max: int = AHEAD_MAX
    """So many entries are read before somebody takes them, and the rest of a batch."""
    bytes_max: int = BATCH_BYTES
    """Of what is read before somebody takes it, unless one entry is larger."""


@asynccontextmanager
async def follow_shard(
    eventlog: EventLog,
    shard: int,
    *,
    after: int,
    reader: str,
    pace: ReadPace = ReadPace(),  # noqa: B008 - a frozen value
    verify: Verify | None = None,
) -> AsyncIterator["ShardReader"]:
    """Read a shard during the block.

    `verify` raises if the log is another one: the server loses its readers when it is restored.
    """
    shard_reader = ShardReader(eventlog, shard, after, reader, pace, verify)
    try:
        yield shard_reader
    finally:
        await shard_reader.close()


class ShardReader:
    """One reader of a shard. A restarted server forgets its readers without notice."""

    def __init__(
        self,
        eventlog: EventLog,
        shard: int,
        after: int,
        reader: str,
        pace: ReadPace,
        verify: Verify | None,
    ) -> None:
        self._shards = eventlog.shards
        self._shard = shard
        self._reader = reader
        self._pace = pace
        self._verify = verify
        self._position = after
        self._ahead: list[LogEntry] = []
        self._ahead_bytes = 0
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._taken_at = 0.0
        self._on_full: Callable[[], None] = lambda: None
        self._end, self._quiet, self._quiet_max = 0, 0, 1
        self._source = asyncio.create_task(self._read())

    @property
    def has_entries(self) -> bool:
        """Whether there is something to take."""
        return bool(self._ahead)

    @property
    def is_full(self) -> bool:
        """Whether it reads no further before somebody takes what it has read."""
        return len(self._ahead) >= self._pace.ahead_max or self._ahead_bytes >= self._pace.bytes_max

    def on_full(self, call: Callable[[], None]) -> None:
        """Call this whenever the reader becomes full."""
        self._on_full = call

    async def wait(self) -> bool:
        """Wait until there are entries. False: the shard was quiet for a while.

        Raises what ended the reading.
        """
        if not self._ahead:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pace.quiet_s):
                    await self._arrived.wait()
        if self._ahead:
            self._end, self._quiet, self._quiet_max = 0, 0, 1
            await asyncio.sleep(self._taken_at + self._pace.linger_s - time.monotonic())
            return True
        if self._source.done():
            self._source.result()
        await self._look_for_lost_entries()
        return False

    def take(self) -> Sequence[LogEntry]:
        """Everything that was read since it was last asked."""
        entries, self._ahead, self._ahead_bytes = self._ahead, [], 0
        if not self._source.done():
            self._arrived.clear()
        self._taken.set()
        self._taken_at = time.monotonic()
        return entries

    async def close(self) -> None:
        """Stop reading."""
        await cancel_and_wait(self._source)

    async def _look_for_lost_entries(self) -> None:
        self._quiet += 1
        if self._end > self._position and self._quiet > self._quiet_max:
            # The shard has entries that did not come: the server has lost this reader.
            log.info(
                "shard reader got no entries: it subscribes again",
                extra={"shard": self._shard, "reader": self._reader},
            )
            await self.close()
            if self._verify is not None:
                await self._verify()
            self._source = asyncio.create_task(self._read())
            self._quiet, self._quiet_max = 0, min(self._quiet_max * 2, QUIET_PERIODS_MAX)
        self._end = await self._shards.last_position(self._shard)

    async def _read(self) -> None:
        batches = self._shards.follow(
            self._shard, after=self._position, reader=self._reader, bytes_max=self._pace.bytes_max
        )
        try:
            async for entries in batches:
                await self._put(entries)
        finally:
            self._arrived.set()
            if isinstance(batches, AsyncGenerator):
                await batches.aclose()

    async def _put(self, entries: Sequence[LogEntry]) -> None:
        self._position = entries[-1].position
        self._ahead.extend(entries)
        self._ahead_bytes += sum(len(entry.payload) for entry in entries)
        self._arrived.set()
        if self.is_full:
            self._on_full()
        while self.is_full:
            self._taken.clear()
            await self._taken.wait()
