"""Drops the read models and builds them again from the log. The rows are the same."""

import asyncio
import gc
import hashlib
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from psycopg import errors

from fairlead_eventlog.connection import EventLog
from fairlead_projector import database, migrations
from fairlead_projector.database import Connection, query
from fairlead_projector.projection.group.shard_group import ShardGroup
from fairlead_projector.projection.group.writer import BatchLimits
from fairlead_projector.projection.shard import ReadOptions, project_shard
from fairlead_projector.shard_balance import ShardShare
from fairlead_projector.task_supervisor import Complaints, keep_running
from fairlead_schema.subjects import SHARDS
from fairlead_service.supervise import cancel_and_wait

# Nobody waits for a single entry of a rebuild: a large batch writes each session and message once.
LIMITS: Final = BatchLimits(commits_max=2_000)
# While Postgres works for one group, this process decodes and folds for the other.
GROUPS: Final = 2
# A batch makes many small values without cycles. Frequent collection takes a fifth of the time.
COLLECT_AFTER: Final = (500_000, 10, 10)
POLL_S: Final = 0.1
RESET_ATTEMPTS_MAX: Final = 5
TABLES: Final = (
    "checkpoint",
    "session",
    "session_title",
    "session_input",
    "session_ask",
    "session_message",
    "session_event",
    "tenant_total",
    "principal_total",
)


class RebuildProgress(NamedTuple):
    """How many commits are applied, and how many there are."""

    applied: int
    total: int


async def rebuild(
    dsn: str,
    eventlog: EventLog,
    *,
    progress: Callable[[RebuildProgress], None],
    reader: str = "projector",
) -> None:
    """Rebuild up to the current end of the log.

    A projector may keep running: the new checkpoints fence it, and the next owner of each shard
    replays it.
    """
    async with await database.connect(dsn) as connection:
        await _reset(connection)
        ends = [await eventlog.shards.last_position(shard) for shard in range(SHARDS)]
        # The first projection has stored the dead letters already.
        replay = replace(eventlog, dead_letters=_DiscardedLetters())
        share, complaints = ShardShare(), Complaints()
        options = ReadOptions(LIMITS.commits_max, reader=reader)
        async with AsyncExitStack() as stack:
            stack.enter_context(_seldom_collected())
            groups = [
                await stack.enter_async_context(ShardGroup(dsn, replay, LIMITS))
                for _number in range(GROUPS)
            ]
            tasks = [
                asyncio.create_task(
                    keep_running(
                        f"shard {shard}",
                        partial(
                            project_shard, shard, groups[shard % GROUPS], share, options=options
                        ),
                        complaints,
                    )
                )
                for shard in range(SHARDS)
            ]
            try:
                await _wait_until_projected(connection, ends, progress)
            finally:
                await cancel_and_wait(*tasks)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


async def digest(dsn: str) -> str:
    """One hash over every row of every table in key order. Equal rows give equal hashes."""
    hash_ = hashlib.sha256()
    async with await database.connect(dsn) as connection:
        for table in TABLES:
            hash_.update(table.encode())
            async with connection.cursor().copy(query(f"dump_{table}")) as rows:
                async for chunk in rows:
                    hash_.update(chunk)
    return hash_.hexdigest()


async def _reset(connection: Connection) -> None:
    """Create empty tables. A deadlock with a running writer makes us try again."""
    for _attempt in range(RESET_ATTEMPTS_MAX - 1):
        with suppress(errors.DeadlockDetected):
            return await _reset_once(connection)
    return await _reset_once(connection)


async def _reset_once(connection: Connection) -> None:
    async with connection.transaction():
        await migrations.lock_migrations(connection)
        for name in ("drop_read", "drop_projection", "forget_migrations"):
            await connection.execute(query(name))
        await migrations.apply_missing(connection)
        for shard in range(SHARDS):
            await connection.execute(query("begin_checkpoint"), {"shard": shard})


async def _wait_until_projected(
    connection: Connection, ends: list[int], progress: Callable[[RebuildProgress], None]
) -> None:
    while True:
        cursor = await connection.execute(query("load_checkpoints"))
        positions: dict[int, int] = dict(await cursor.fetchall())
        reached = [min(positions.get(shard, 0), end) for shard, end in enumerate(ends)]
        progress(RebuildProgress(sum(reached), sum(ends)))
        if reached == ends:
            return
        await asyncio.sleep(POLL_S)


class _DiscardedLetters:
    """Drops dead letters: the first projection stored them already."""

    async def add(self, source: str, subject: str, payload: bytes, reason: str) -> None:
        """Do nothing."""
