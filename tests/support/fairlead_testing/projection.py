"""Waits for the read models: a test compares them only when the projector has read the whole log."""

import asyncio
from contextlib import suppress

import psycopg

from fairlead_projector import database
from fairlead_projector.database import query
from fairlead_projector.projection.rebuild import digest
from fairlead_schema.subjects import SHARDS
from fairlead_testing.stack import Stack

POLL_S = 0.1


async def digest_when_projected(up: Stack, *, timeout_s: float = 60.0) -> str:
    """The digest of the read models at the end of the log, which must not grow meanwhile."""
    async with asyncio.timeout(timeout_s):
        while True:
            with suppress(psycopg.Error):
                ends = await _log_ends(up)
                if await _checkpoints(up) == ends:
                    rows = await digest(up.up.postgres)
                    if await _log_ends(up) == ends:
                        return rows
            await asyncio.sleep(POLL_S)


async def _log_ends(up: Stack) -> dict[int, int]:
    return {shard: await up.eventlog.shards.last_position(shard) for shard in range(SHARDS)}


async def _checkpoints(up: Stack) -> dict[int, int]:
    async with await database.connect(up.up.postgres) as connection:
        cursor = await connection.execute(query("load_checkpoints"))
        return dict(await cursor.fetchall())
