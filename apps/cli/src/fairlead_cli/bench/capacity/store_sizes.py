"""Reads how many bytes a stack has stored: in the log, in the feed, in other streams, in Postgres."""

from typing import NamedTuple, Self

import httpx
import psycopg

_LOG_PREFIX = "LOG-"
_FEED = "EVENTS"


class StoreSizes(NamedTuple):
    """The bytes of each store. Copies on other nodes are not counted."""

    log: int
    feed: int
    other_streams: int
    postgres: int
    """Tables and indexes, without the write-ahead log."""

    def minus(self, other: Self) -> "StoreSizes":
        return StoreSizes(*(here - there for here, there in zip(self, other, strict=True)))


async def read_store_sizes(monitor: str, dsn: str) -> StoreSizes:
    """Ask a NATS node and a database for their sizes."""
    streams = await _read_stream_bytes(monitor)
    log = sum(size for name, size in streams.items() if name.startswith(_LOG_PREFIX))
    feed = streams.get(_FEED, 0)
    return StoreSizes(log, feed, sum(streams.values()) - log - feed, await _database_bytes(dsn))


async def _read_stream_bytes(monitor: str) -> dict[str, int]:
    async with httpx.AsyncClient(base_url=monitor, trust_env=False) as client:
        answer = await client.get("/jsz", params={"streams": "true", "accounts": "true"})
    return {
        stream["name"]: int(stream["state"]["bytes"])
        for account in answer.json().get("account_details", ())
        for stream in account.get("stream_detail", ())
    }


async def _database_bytes(dsn: str) -> int:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        cursor = await connection.execute("SELECT pg_database_size(current_database())")
        row = await cursor.fetchone()
    assert row is not None, "a function gives one row"
    return int(row[0])
