"""The limits: what the servers themselves give, without Fairlead."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import psycopg

from fairlead_cli.bench.measure import Timing, concurrent, sequential
from fairlead_eventlog.jetstream.connect import open_link
from fairlead_eventlog.jetstream.link import Link

STREAM: Final = "BENCH"
PAYLOAD: Final = b"x" * 512


@asynccontextmanager
async def bench_stream(url: str) -> AsyncIterator[Link]:
    """A stream of its own, gone afterwards."""
    async with open_link(url, name="fairlead-bench", timeout_s=30.0) as link:
        config = {"name": STREAM, "subjects": ["bench.>"], "storage": "file"}
        await link.api(f"STREAM.CREATE.{STREAM}", config)
        try:
            yield link
        finally:
            await link.api(f"STREAM.DELETE.{STREAM}")


async def publishes(url: str, *, count: int) -> tuple[Timing, Timing]:
    """Acknowledged publishes: one after another, and 32 at a time."""
    async with bench_stream(url) as link:

        async def publish(number: int) -> None:
            await link.store(f"bench.{number}", PAYLOAD)

        alone = await sequential(publish, count=count)
        together = await concurrent(publish, count=count * 4, ways=32)
    return alone, together


async def copy(dsn: str, rows: list[tuple[object, ...]]) -> float:
    """Seconds that Postgres needs to take these event rows by COPY, in the projector's batches."""
    batch = 2500
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        # As the projector's own table is: on disk, logged, with its key.
        await connection.execute(
            "CREATE TABLE bench_event (LIKE projection.session_event INCLUDING INDEXES)"
        )
        await connection.commit()
        elapsed = 0.0
        for first in range(0, len(rows), batch):
            elapsed += await _copied(connection, rows[first : first + batch])
    return elapsed


async def _copied(
    connection: psycopg.AsyncConnection[tuple[object, ...]], rows: list[tuple[object, ...]]
) -> float:
    began = time.perf_counter()
    async with (
        connection.cursor() as cursor,
        cursor.copy("COPY bench_event FROM STDIN") as sink,
    ):
        for row in rows:
            await sink.write_row(row)
    await connection.commit()
    return time.perf_counter() - began
