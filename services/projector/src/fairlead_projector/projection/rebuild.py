"""Drops the read models and builds them again from the log. The rows are the same."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from psycopg import errors

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.streams import log_stream
from fairlead_projector import database, migrations
from fairlead_projector.database import Connection, query
from fairlead_projector.projection.workers.crew import Crew, Staffing, start_crew
from fairlead_projector.projection.workers.job import WorkerJob
from fairlead_projector.projection.workers.replay import replay_shards
from fairlead_schema.subjects import SHARDS

POLL_S: Final = 0.02
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
    staffing: Staffing | None = None,
) -> None:
    """Rebuild up to the current end of the log, with more processes if there is staffing for them.

    A projector may keep running: the new checkpoints fence it, and the next owner of each shard
    replays it. Raises WorkerDied: the rows are incomplete until a projector or a rebuild goes on.
    """
    ends = [await eventlog.shards.last_position(shard) for shard in range(SHARDS)]
    count = 0 if staffing is None else staffing.count_workers(sum(ends))
    # The workers start while the tables are made.
    copies = staffing is not None and staffing.copies
    async with (
        start_crew(count, copies=copies) as crew,
        await database.connect(dsn) as connection,
    ):
        work, _nothing = await asyncio.gather(_estimate_work(eventlog, ends), _reset(connection))
        ours, *theirs = divide_shards(work, 1 + count)
        if staffing is not None:
            crew.begin([WorkerJob(dsn, staffing.nats, part, reader) for part in theirs])
        async with replay_shards(dsn, eventlog, ours, reader=reader, alone=not theirs):
            await _wait_until_projected(connection, ends, progress, crew)
            await connection.execute(query("sync_checkpoints"))


def divide_shards(work: Sequence[int], processes: int) -> list[tuple[int, ...]]:
    """The shards of each process, so that all have about the same work. The largest come first."""
    parts: list[list[int]] = [[] for _process in range(processes)]
    for shard in sorted(range(SHARDS), key=lambda shard: -work[shard]):
        least = min(parts, key=lambda part: (sum(work[other] for other in part), len(part)))
        least.append(shard)
    return [tuple(part) for part in parts]


async def _estimate_work(eventlog: EventLog, ends: Sequence[int]) -> Sequence[int]:
    """The bytes of each shard; its commits if the sizes of streams cannot be read."""
    try:
        sizes = {size.stream: size.bytes for size in await eventlog.stream_sizes.read_all()}
    except LogError:
        return ends
    return [sizes.get(log_stream(shard), end) for shard, end in enumerate(ends)]


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
    connection: Connection,
    ends: list[int],
    progress: Callable[[RebuildProgress], None],
    crew: Crew,
) -> None:
    while True:
        cursor = await connection.execute(query("load_checkpoints"))
        positions: dict[int, int] = dict(await cursor.fetchall())
        reached = [min(positions.get(shard, 0), end) for shard, end in enumerate(ends)]
        progress(RebuildProgress(sum(reached), sum(ends)))
        if reached == ends:
            return
        crew.check()
        await asyncio.sleep(POLL_S)
