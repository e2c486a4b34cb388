"""Drops the read models and makes them again from the log; the result is the same, row for row."""

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from psycopg import errors

from fairlead_eventlog.connection import EventLog
from fairlead_projector import database, migrations
from fairlead_projector.database import Connection, query
from fairlead_projector.projection.shard import Reading, project
from fairlead_projector.shard_balance import Share
from fairlead_projector.supervise import Complaints, keep
from fairlead_schema.subjects import SHARDS
from fairlead_service.supervise import cancel_and_wait

BATCH_COMMITS_MAX: Final = 500
POLL_S: Final = 0.2
RESET_ATTEMPTS_MAX: Final = 5
TABLES: Final = (
    "checkpoint",
    "session",
    "session_input",
    "session_ask",
    "session_message",
    "session_event",
)


class Progress(NamedTuple):
    """How many commits are applied, of how many."""

    applied: int
    total: int


async def rebuild(
    dsn: str,
    eventlog: EventLog,
    *,
    progress: Callable[[Progress], None],
    reader: str = "projector",
) -> None:
    """Rebuild up to where the log ends now.

    A running projector may go on: it is fenced by the fresh checkpoints, and whoever then owns a
    shard replays it.
    """
    async with await database.connect(dsn) as connection:
        await _reset(connection)
        ends = [await eventlog.shards.last_position(shard) for shard in range(SHARDS)]
        # What is unreadable was buried when it was first met.
        replayed = replace(eventlog, dead_letters=_DiscardedLetters())
        share, complaints = Share(), Complaints()
        reading = Reading(BATCH_COMMITS_MAX, reader)
        tasks = [
            asyncio.create_task(
                keep(
                    f"shard {shard}",
                    partial(project, shard, dsn, replayed, share, reading=reading),
                    complaints,
                )
            )
            for shard in range(SHARDS)
        ]
        try:
            await _arrive(connection, ends, progress)
        finally:
            await cancel_and_wait(*tasks)


async def digest(dsn: str) -> str:
    """One hash over every row of every table in key order, to compare two databases by."""
    whole = hashlib.sha256()
    async with await database.connect(dsn) as connection:
        for table in TABLES:
            whole.update(table.encode())
            async with connection.cursor().copy(query(f"dump_{table}")) as rows:
                async for chunk in rows:
                    whole.update(chunk)
    return whole.hexdigest()


async def _reset(connection: Connection) -> None:
    """Start from empty tables. A writer at work may force us to try again."""
    for _attempt in range(RESET_ATTEMPTS_MAX - 1):
        with suppress(errors.DeadlockDetected):
            return await _reset_once(connection)
    return await _reset_once(connection)


async def _reset_once(connection: Connection) -> None:
    async with connection.transaction():
        await migrations.hold(connection)
        for name in ("drop_read", "drop_projection", "forget_migrations"):
            await connection.execute(query(name))
        await migrations.apply(connection)
        for shard in range(SHARDS):
            await connection.execute(query("begin_checkpoint"), {"shard": shard})


async def _arrive(
    connection: Connection, ends: list[int], progress: Callable[[Progress], None]
) -> None:
    while True:
        cursor = await connection.execute(query("load_checkpoints"))
        positions: dict[int, int] = dict(await cursor.fetchall())
        reached = [min(positions.get(shard, 0), end) for shard, end in enumerate(ends)]
        progress(Progress(sum(reached), sum(ends)))
        if reached == ends:
            return
        await asyncio.sleep(POLL_S)


class _DiscardedLetters:
    """Drops dead letters: the first projection stored them already."""

    async def add(self, source: str, subject: str, payload: bytes, reason: str) -> None:
        """Nothing is left to do."""
