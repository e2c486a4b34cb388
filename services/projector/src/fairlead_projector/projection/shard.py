"""Projects one shard: takes its lock, follows its log from the checkpoint, applies batches."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import BATCH_BYTES
from fairlead_projector import database, metrics
from fairlead_projector.migrations import ensure_migrated
from fairlead_projector.projection.batches import split_entries
from fairlead_projector.projection.reprojection import project_broken_again
from fairlead_projector.projection.shard_writer import ShardWriter
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
    writer: ShardWriter, share: ShardShare, options: ReadOptions, on_healthy: Callable[[], None]
) -> None:
    await writer.load_checkpoint()
    await project_broken_again(writer)
    position = writer.mark.position
    log.info("shard projection started", extra={"shard": writer.shard, "position": position})
    async with follow_shard(
        writer.eventlog,
        writer.shard,
        after=position,
        reader=options.reader,
        pace=ReadPace(linger_s=LINGER_S, bytes_max=options.bytes_max),
        verify=writer.check_log,
    ) as batches:
        async for entries in batches:
            writer.check_incarnation()
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
                mark = await ShardStore(connection, shard).checkpoint()
                end = await eventlog.shards.last_position(shard)
                metrics.LAG.labels(str(shard)).set(max(0, end - mark.position))
            on_healthy()
            await asyncio.sleep(interval_s)
