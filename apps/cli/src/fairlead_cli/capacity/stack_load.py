"""Reads what a running stack does now: two looks at the log, its queues, and Postgres."""

import asyncio
import time
from typing import Final

import psycopg

from fairlead_cli.capacity.limits import StackLoad
from fairlead_eventlog.condition.operations import JetStreamOperations
from fairlead_eventlog.condition.waiting_work import JetStreamWaitingWork
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.streams import log_stream
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.subjects import SHARDS

LOOK_S: Final = 1.0
_CHECKPOINTS: Final = "SELECT shard, position FROM projection.checkpoint"
_CONNECTIONS: Final = """
    SELECT count(*) / current_setting('max_connections')::float
      FROM pg_stat_activity
     WHERE backend_type = 'client backend'
"""


async def read_load(nats: NatsAddress, dsn: str | None, *, timeout_s: float) -> StackLoad:
    """The load of a stack over one second. Raises LogError."""
    async with open_link(nats, name="fairlead-doctor", timeout_s=timeout_s) as link:
        before, began = await _read_positions(link), time.monotonic()
        await asyncio.sleep(LOOK_S)
        after, took_s = await _read_positions(link), time.monotonic() - began
        queues = await JetStreamWaitingWork(link).read_all()
    unprojected, connections_share = await _read_postgres(dsn, before)
    rates = [(after[shard] - before[shard]) / took_s for shard in before]
    return StackLoad(rates, unprojected, queues, connections_share)


async def _read_positions(link: NatsLink) -> dict[int, int]:
    """The last position of each shard that exists."""
    streams = {state.name: state for state in await JetStreamOperations(link).streams()}
    shards = {shard: streams.get(log_stream(shard)) for shard in range(SHARDS)}
    return {shard: state.last_position for shard, state in shards.items() if state is not None}


async def _read_postgres(
    dsn: str | None, positions: dict[int, int]
) -> tuple[int | None, float | None]:
    """Commits that are not projected, and the used share of connections; None if nobody says."""
    if dsn is None:
        return None, None
    try:
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
            cursor = await connection.execute(_CONNECTIONS)
            share = await cursor.fetchone()
            cursor = await connection.execute(_CHECKPOINTS)
            checkpoints: dict[int, int] = dict(await cursor.fetchall())
    except psycopg.Error:
        return None, None  # The check of Postgres says why.
    behind = sum(max(0, last - checkpoints.get(shard, 0)) for shard, last in positions.items())
    return behind, None if share is None else float(share[0])
