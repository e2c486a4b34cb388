"""Projects one shard: owns it, follows its log from the checkpoint, applies it in batches."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import DataError, IntegrityError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import LogEntry
from fairlead_projector import database, metrics
from fairlead_projector.errors import Fenced
from fairlead_projector.migrations import migrate
from fairlead_projector.projection import log_entries, statements
from fairlead_projector.projection.log_entries import Incoming
from fairlead_projector.projection.purge import erase
from fairlead_projector.projection.statements import Poison
from fairlead_projector.projection.store import Store
from fairlead_projector.shard_balance import Share, announce, count
from fairlead_projector.shard_reader import following
from fairlead_schema import subjects

log = logging.getLogger(__name__)

LOCK_RETRY_S: Final = 1.0
# The first commit of a burst is shown at once, the rest in few transactions.
LINGER_S: Final = 0.05
WATCH_INTERVAL_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Reading:
    """How a shard is read: how many commits at a time, and under whose name."""

    batch_max: int
    reader: str = "projector"


async def project(
    shard: int,
    dsn: str,
    eventlog: EventLog,
    share: Share,
    *,
    reading: Reading,
    well: Callable[[], None],
) -> None:
    """Write one shard until it is left to another process. Raises what stopped it before that."""
    async with await database.connect(dsn) as connection:
        await migrate(connection)
        while not (share.room() and await database.try_lock(connection, shard)):
            well()
            await asyncio.sleep(LOCK_RETRY_S)
        well()
        with share.holding(shard):
            writer = Writer(Store(connection, shard), eventlog, shard)
            await _write(writer, share, reading, well)


async def _write(
    writer: "Writer", share: Share, reading: Reading, well: Callable[[], None]
) -> None:
    await writer.begin()
    log.info("projecting", extra={"shard": writer.shard, "position": writer.position})
    after, size = writer.position, reading.batch_max
    async with following(
        writer.eventlog,
        writer.shard,
        after=after,
        reader=reading.reader,
        linger_s=LINGER_S,
    ) as batches:
        async for entries in batches:
            if not entries:
                await writer.verify()
            for start in range(0, len(entries), size):
                await writer.write(entries[start : start + size])
            well()
            if share.surplus(writer.shard):
                return


async def watch(dsn: str, eventlog: EventLog, share: Share, *, well: Callable[[], None]) -> None:
    """Measure how far the rows are behind the log, and share the shards fairly, for ever."""
    async with await database.connect(dsn) as connection:
        await migrate(connection)
        await announce(connection)
        while True:
            share.divide(await count(connection))
            for shard in range(subjects.SHARDS):
                position = await Store(connection, shard).checkpoint()
                end = await eventlog.shards.last_position(shard)
                metrics.LAG.labels(str(shard)).set(max(0, end - position))
            well()
            await asyncio.sleep(WATCH_INTERVAL_S)


class Writer:
    """Applies entries of one shard in order and knows how far it came."""

    def __init__(self, store: Store, eventlog: EventLog, shard: int) -> None:
        self._store = store
        self.eventlog = eventlog
        self.shard = shard
        self._buried: set[int] = set()
        self.position = 0

    async def begin(self) -> None:
        self.position = await self._store.checkpoint()

    async def verify(self) -> None:
        """Notice, while nothing comes, that somebody moved the checkpoint. Raises Fenced then."""
        if await self._store.checkpoint() != self.position:
            raise Fenced(self.shard, self.position)

    async def write(self, entries: Sequence[LogEntry]) -> None:
        """Apply entries after the checkpoint; what was applied before is passed over."""
        fresh = [log_entries.read(entry) for entry in entries if entry.position > self.position]
        for batch in _until_reverts(fresh):
            await self._write(batch)

    async def _write(self, batch: Sequence[Incoming]) -> None:
        try:
            await self._apply(batch)
        except (DataError, IntegrityError) as error:
            # Some commit holds what the tables refuse. Find it: only its session may stop.
            self._store.forget()
            if len(batch) > 1:
                for one in batch:
                    await self._write([one])
            elif batch[0].reason is None:
                await self._write(
                    [log_entries.unreadable(batch[0].entry, f"not storable: {error}")]
                )
            else:
                raise

    async def _apply(self, batch: Sequence[Incoming]) -> None:
        began, after = time.perf_counter(), self.position
        touched = [one.entry.at for one in batch]
        sessions = await self._store.load(touched, statements.named(batch))
        changes = statements.fold(sessions, batch)
        position = batch[-1].entry.position
        async with self._store.applying(changes, after=after, position=position):
            await self._bury(changes.poison)
            await erase(self.eventlog, changes.purges)
        self._store.remember(sessions, changes)
        self.position = position
        metrics.EVENTS.inc(len(changes.events))
        metrics.BATCH.observe(len(batch))
        metrics.APPLY.observe(time.perf_counter() - began)

    async def _bury(self, poison: Sequence[Poison]) -> None:
        """Just before the row says broken, and only as the shard's one writer."""
        for entry, reason in poison:
            if entry.position in self._buried:
                continue
            log.error("session broken", extra={"session_id": entry.at.session_id, "reason": reason})
            metrics.BROKEN.inc()
            subject = subjects.log(entry.at)
            await self.eventlog.dead_letters.add("projector", subject, entry.payload, reason)
            self._buried.add(entry.position)


def _until_reverts(batch: Sequence[Incoming]) -> Iterator[Sequence[Incoming]]:
    start = 0
    for index, one in enumerate(batch, start=1):
        if index == len(batch) or statements.reverts(one):
            yield batch[start:index]
            start = index
