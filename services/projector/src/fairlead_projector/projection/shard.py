"""Projects one shard: holds it, follows its log from the checkpoint, and has its entries written."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import BATCH_BYTES
from fairlead_projector import database, metrics
from fairlead_projector.database import Connection, query
from fairlead_projector.migrations import ensure_migrated
from fairlead_projector.projection.group.held_shard import HeldShard
from fairlead_projector.projection.group.shard_group import LOCK_RETRY_S, ShardGroup
from fairlead_projector.projection.reprojection import project_broken_again
from fairlead_projector.projection.store import TableStore
from fairlead_projector.shard_balance import ShardShare, announce_projector, count_projectors
from fairlead_projector.shard_reader import Companions, ReadPace, follow_shard
from fairlead_schema import subjects

log = logging.getLogger(__name__)

WATCH_INTERVAL_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a shard: the entries and bytes that are read ahead, and the name of the reader."""

    ahead_max: int
    bytes_max: int = BATCH_BYTES
    reader: str = "projector"
    lock_retry_s: float = LOCK_RETRY_S
    """Before the lock of the shard is tried again."""
    companions: Companions | None = None
    """The other readers of this process."""


async def project_shard(
    shard: int,
    group: ShardGroup,
    share: ShardShare,
    *,
    options: ReadOptions,
    on_healthy: Callable[[], None],
) -> None:
    """Project one shard until another process should have it, or until something fails."""
    async with group.hold(
        shard, share, lock_retry_s=options.lock_retry_s, on_waiting=on_healthy
    ) as held:
        await project_broken_again(group, held)
        await _project_until_surplus(held, group, share, options, on_healthy)


async def _project_until_surplus(
    held: HeldShard,
    group: ShardGroup,
    share: ShardShare,
    options: ReadOptions,
    on_healthy: Callable[[], None],
) -> None:
    position = held.mark.position
    log.info("shard projection started", extra={"shard": held.shard, "position": position})
    async with follow_shard(
        group.eventlog,
        held.shard,
        after=position,
        reader=options.reader,
        pace=ReadPace(
            ahead_max=options.ahead_max,
            bytes_max=options.bytes_max,
            companions=options.companions,
        ),
        verify=held.check_log,
    ) as reader:
        while not share.is_surplus(held.shard):
            has_entries = await reader.wait()
            held.check_incarnation()
            if has_entries:
                await group.write(held, reader)
            else:
                await group.check_fence(held)
            on_healthy()


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
            positions = await TableStore(connection).positions()
            for shard in range(subjects.SHARDS):
                end = await eventlog.shards.last_position(shard)
                metrics.LAG.labels(str(shard)).set(max(0, end - positions.get(shard, 0)))
                fed, _revision = await eventlog.feed.checkpoint(shard)
                metrics.FEED_LAG.labels(str(shard)).set(max(0, end - fed))
            await _count_asks(connection)
            on_healthy()
            await asyncio.sleep(interval_s)


async def _count_asks(connection: Connection) -> None:
    cursor = await connection.execute(query("count_asks"))
    for kind, number in await cursor.fetchall():
        metrics.ASKS.labels(kind).set(number)
