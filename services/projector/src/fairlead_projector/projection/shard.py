"""Projects one shard: takes its lock, follows its log from the checkpoint, applies batches."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import Error

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import BATCH_BYTES, LogEntry
from fairlead_projector import database, metrics
from fairlead_projector.errors import ShardFenced
from fairlead_projector.migrations import ensure_migrated
from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.batches import is_refused, split_entries
from fairlead_projector.projection.log_entries import DecodedEntry
from fairlead_projector.projection.purge import erase
from fairlead_projector.projection.row_changes import BrokenEntry
from fairlead_projector.projection.store import ShardStore
from fairlead_projector.shard_balance import ShardShare, announce_projector, count_projectors
from fairlead_projector.shard_reader import ReadPace, follow_shard
from fairlead_schema import subjects

log = logging.getLogger(__name__)

# The first commit of a burst is applied at once, the rest in few transactions.
LINGER_S: Final = 0.05
WATCH_INTERVAL_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a shard: the commits and bytes of a transaction, and the name of the reader."""

    batch_max: int
    bytes_max: int = BATCH_BYTES
    reader: str = "projector"
    lock_retry_s: float = 1.0
    """Before the lock of the shard is tried again."""


async def project_shard(
    shard: int,
    dsn: str,
    eventlog: EventLog,
    share: ShardShare,
    *,
    options: ReadOptions,
    on_healthy: Callable[[], None],
) -> None:
    """Project one shard until another process should have it, or until something fails."""
    async with await database.connect(dsn) as connection:
        await ensure_migrated(connection)
        while not (share.has_room() and await database.try_lock(connection, shard)):
            on_healthy()
            await asyncio.sleep(options.lock_retry_s)
        on_healthy()
        with share.hold(shard):
            writer = ShardWriter(ShardStore(connection, shard), eventlog, shard)
            await _project_until_surplus(writer, share, options, on_healthy)


async def _project_until_surplus(
    writer: "ShardWriter", share: ShardShare, options: ReadOptions, on_healthy: Callable[[], None]
) -> None:
    await writer.load_checkpoint()
    log.info("shard projection started", extra={"shard": writer.shard, "position": writer.position})
    after = writer.position
    async with follow_shard(
        writer.eventlog,
        writer.shard,
        after=after,
        reader=options.reader,
        pace=ReadPace(linger_s=LINGER_S, bytes_max=options.bytes_max),
    ) as batches:
        async for entries in batches:
            if not entries:
                await writer.check_fence()
            for batch in split_entries(
                entries, commits_max=options.batch_max, bytes_max=options.bytes_max
            ):
                await writer.write(batch)
            on_healthy()
            if share.is_surplus(writer.shard):
                return


async def watch_shards(
    dsn: str,
    eventlog: EventLog,
    share: ShardShare,
    *,
    on_healthy: Callable[[], None],
    interval_s: float = WATCH_INTERVAL_S,
) -> None:
    """Measure the lag of every shard, and divide the shards among projectors, until something fails."""
    async with await database.connect(dsn) as connection:
        await ensure_migrated(connection)
        await announce_projector(connection)
        while True:
            share.divide(await count_projectors(connection))
            for shard in range(subjects.SHARDS):
                position = await ShardStore(connection, shard).checkpoint()
                end = await eventlog.shards.last_position(shard)
                metrics.LAG.labels(str(shard)).set(max(0, end - position))
            on_healthy()
            await asyncio.sleep(interval_s)


class ShardWriter:
    """Applies the entries of one shard in order, from its checkpoint on."""

    def __init__(self, store: ShardStore, eventlog: EventLog, shard: int) -> None:
        self._store = store
        self.eventlog = eventlog
        self.shard = shard
        self._dead_lettered: set[int] = set()
        self.position = 0

    async def load_checkpoint(self) -> None:
        self.position = await self._store.checkpoint()

    async def check_fence(self) -> None:
        """Raise ShardFenced if another writer moved the checkpoint. For times without new entries."""
        if await self._store.checkpoint() != self.position:
            raise ShardFenced(self.shard, self.position)

    async def write(self, entries: Sequence[LogEntry]) -> None:
        """Apply the entries after the checkpoint, and skip earlier ones."""
        decoded = [
            log_entries.decode_entry(entry) for entry in entries if entry.position > self.position
        ]
        for batch in _split_after_reverts(decoded):
            await self._write_batch(batch)

    async def _write_batch(self, batch: Sequence[DecodedEntry]) -> None:
        try:
            await self._apply(batch)
        except Error as error:
            self._store.forget()
            if not is_refused(error, alone=len(batch) == 1):
                raise
            await self._write_parts(batch, error)

    async def _write_parts(self, batch: Sequence[DecodedEntry], error: Error) -> None:
        """Find the commit that Postgres refuses, because only its session may stop."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._write_batch(batch[:middle])
            await self._write_batch(batch[middle:])
        elif batch[0].reason is None:
            await self._write_batch(
                [log_entries.unreadable_entry(batch[0].entry, f"not storable: {error}")]
            )
        else:
            raise error

    async def _apply(self, batch: Sequence[DecodedEntry]) -> None:
        started, after = time.perf_counter(), self.position
        addresses = [decoded.entry.at for decoded in batch]
        sessions = await self._store.load(addresses, row_changes.named_messages(batch))
        changes = row_changes.fold_batch(sessions, batch)
        position = batch[-1].entry.position
        async with self._store.apply(changes, after=after, position=position):
            await self._add_dead_letters(changes.broken)
            await erase(self.eventlog, changes.purges)
        self._store.remember(sessions, changes)
        self.position = position
        metrics.EVENTS.inc(len(changes.events))
        metrics.BATCH.observe(len(batch))
        metrics.APPLY.observe(time.perf_counter() - started)

    async def _add_dead_letters(self, broken: Sequence[BrokenEntry]) -> None:
        """Store broken entries. This runs inside the transaction, so only the owner of the shard does it."""
        for entry, reason in broken:
            if entry.position in self._dead_lettered:
                continue
            log.error(
                "session broken: its projection stops here",
                extra={"session_id": entry.at.session_id, "reason": reason},
            )
            metrics.BROKEN.inc()
            subject = subjects.log(entry.at)
            await self.eventlog.dead_letters.add("projector", subject, entry.payload, reason)
            self._dead_lettered.add(entry.position)


def _split_after_reverts(batch: Sequence[DecodedEntry]) -> Iterator[Sequence[DecodedEntry]]:
    start = 0
    for index, decoded in enumerate(batch, start=1):
        if index == len(batch) or row_changes.is_revert(decoded):
            yield batch[start:index]
            start = index
