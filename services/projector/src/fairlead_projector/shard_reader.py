"""Follows a shard of the log, reads ahead, and subscribes again if the server has lost the reader.

The tables and the feed of a shard are read by one consumer while one process has both and neither lags:
one reader is the host, and the other its guest. No reader ever waits for the other one.
"""

import asyncio
import logging
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import BATCH_BYTES, LogEntry
from fairlead_service.supervise import cancel_and_wait

log = logging.getLogger(__name__)

Verify: TypeAlias = Callable[[], Awaitable[None]]

QUIET_S: Final = 2.0
QUIET_PERIODS_MAX: Final = 32
AHEAD_MAX: Final = 500


class Companions:
    """The readers of this process, so that two readers of a shard find each other."""

    def __init__(self) -> None:
        self._readers: dict[int, set[ShardReader]] = {}

    def add(self, shard: int, reader: "ShardReader") -> None:
        self._readers.setdefault(shard, set()).add(reader)

    def remove(self, shard: int, reader: "ShardReader") -> None:
        self._readers.get(shard, set()).discard(reader)

    def others(self, shard: int, reader: "ShardReader") -> "Iterable[ShardReader]":
        """The other readers of a shard."""
        return self._readers.get(shard, set()) - {reader}


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
    companions: Companions | None = None
    """The other readers of this process."""


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
    companions = pace.companions or Companions()
    companions.add(shard, shard_reader)
    try:
        yield shard_reader
    finally:
        companions.remove(shard, shard_reader)
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
        self._companions = pace.companions or Companions()
        self._position = after
        self._ahead: list[LogEntry] = []
        self._ahead_bytes = 0
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._taken_at = 0.0
        self._on_full: Callable[[], None] = lambda: None
        self._end, self._quiet, self._quiet_max = 0, 0, 1
        self._is_reading = False
        self._guest: ShardReader | None = None
        self._host: ShardReader | None = None
        self._left = asyncio.Event()
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
            self._source = asyncio.create_task(self._read(first_alone=True))
            self._quiet, self._quiet_max = 0, min(self._quiet_max * 2, QUIET_PERIODS_MAX)
        self._end = await self._shards.last_position(self._shard)

    async def _read(self, *, first_alone: bool = False) -> None:
        try:
            while True:
                if first_alone or not self._join():
                    await self._read_alone()
                first_alone = False
                if self._host is not None:
                    # Nobody needs the consumer of a guest, also not one of an earlier release.
                    with suppress(LogError):
                        await self._shards.forget_reader(self._shard, self._reader)
                    await self._left.wait()
                await self._wait_for_room()
        finally:
            if self._host is not None:
                self._host._release_guest()  # noqa: SLF001 - the same class
            self._arrived.set()

    async def _read_alone(self) -> None:
        """Read, for a guest too, until a companion is at the same place and can be the host."""
        batches = self._shards.follow(
            self._shard, after=self._position, reader=self._reader, bytes_max=self._pace.bytes_max
        )
        self._is_reading = True
        try:
            async for entries in batches:
                self._put(entries)
                if self._guest is not None:
                    self._guest._offer(entries)  # noqa: SLF001 - the same class
                if self._join():
                    return
                await self._wait_for_room()
        finally:
            self._is_reading = False
            self._release_guest()
            if isinstance(batches, AsyncGenerator):
                await batches.aclose()

    def _put(self, entries: Sequence[LogEntry]) -> None:
        self._position = entries[-1].position
        self._ahead.extend(entries)
        self._ahead_bytes += sum(len(entry.payload) for entry in entries)
        self._arrived.set()
        if self.is_full:
            self._on_full()

    def _offer(self, entries: Sequence[LogEntry]) -> None:
        """Take entries from the host. A guest that is full leaves, and later reads for itself."""
        if self.is_full:
            assert self._host is not None, "only a host offers entries"
            self._host._release_guest()  # noqa: SLF001 - the same class
        else:
            self._put(entries)

    async def _wait_for_room(self) -> None:
        while self.is_full:
            # A guest must not wait for what its host has not written.
            self._release_guest()
            self._taken.clear()
            await self._taken.wait()

    def _join(self) -> bool:
        """Become the guest of a companion at the same place, from its next entry on."""
        if self._guest is not None or self.is_full:
            return False
        for other in self._companions.others(self._shard, self):
            if other._can_host(self._position):  # noqa: SLF001 - the same class
                self._host, other._guest = other, self  # noqa: SLF001
                self._left.clear()
                return True
        return False

    def _can_host(self, position: int) -> bool:
        is_free = self._is_reading and self._guest is None and not self.is_full
        return is_free and self._position == position

    def _release_guest(self) -> None:
        if self._guest is not None:
            self._guest._host = None  # noqa: SLF001 - the same class
            self._guest._left.set()  # noqa: SLF001
            self._guest = None
