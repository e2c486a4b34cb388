"""Times the servers without Fairlead: publishes of NATS and COPY of Postgres."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import psycopg

from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_schema.identity.nats_address import NatsAddress

STREAM: Final = "BENCH"
PAYLOAD: Final = b"x" * 512


@asynccontextmanager
async def bench_stream(address: NatsAddress) -> AsyncIterator[NatsLink]:
    """A stream for the length of a block."""
    async with open_link(address, name="fairlead-bench", timeout_s=30.0) as link:
        config = {"name": STREAM, "subjects": ["bench.>"], "storage": "file"}
        await link.api(f"STREAM.CREATE.{STREAM}", config)
        try:
            yield link
        finally:
            await link.api(f"STREAM.DELETE.{STREAM}")


async def publish(link: NatsLink, number: int) -> None:
    """One acknowledged publish."""
    await link.store(f"bench.{number}", PAYLOAD)


async def time_copy(dsn: str, rows: list[tuple[object, ...]]) -> float:
    """The seconds that Postgres needs to COPY these event rows, in batches of the projector's size."""
    batch = 2500
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        # The table is like the projector's: logged, with the same indexes.
        await connection.execute(
            "CREATE TABLE bench_event (LIKE projection.session_event INCLUDING INDEXES)"
        )
        await connection.commit()
        seconds = 0.0
        for first in range(0, len(rows), batch):
            seconds += await _copy_batch(connection, rows[first : first + batch])
    return seconds


async def _copy_batch(
    connection: psycopg.AsyncConnection[tuple[object, ...]], rows: list[tuple[object, ...]]
) -> float:
    start = time.perf_counter()
    async with (
        connection.cursor() as cursor,
        cursor.copy("COPY bench_event FROM STDIN") as sink,
    ):
        for row in rows:
            await sink.write_row(row)
    await connection.commit()
    return time.perf_counter() - start
