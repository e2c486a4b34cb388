"""Counts what the servers did: messages of NATS, stored messages by stream, transactions."""

from typing import Final, NamedTuple, Self

import httpx
import psycopg

from fairlead_eventlog.streams import STREAMS

_LOG_PREFIX: Final = "LOG-"
_SYNCED: Final = frozenset(spec.name for spec in STREAMS if not spec.lazy)


class ServerCounts(NamedTuple):
    """What NATS and Postgres counted since they started."""

    messages_in: int
    messages_out: int
    commits: int
    wakes: int
    requests: int
    feed: int
    synced: int
    """Stored messages that were on disk before their acknowledgement: one fsync each."""
    transactions: int

    def minus(self, other: Self) -> "ServerCounts":
        return ServerCounts(
            *(here - there for here, there in zip(self, other, strict=True)),
        )


async def count(monitor: str, dsn: str) -> ServerCounts:
    """Read the counters of a NATS node and of a database."""
    async with httpx.AsyncClient(base_url=monitor, trust_env=False) as client:
        server = (await client.get("/varz")).json()
        streams = (await client.get("/jsz", params={"streams": "true", "accounts": "true"})).json()
    last = {
        stream["name"]: int(stream["state"]["last_seq"])
        for account in streams.get("account_details", ())
        for stream in account.get("stream_detail", ())
    }
    return ServerCounts(
        messages_in=int(server["in_msgs"]),
        messages_out=int(server["out_msgs"]),
        commits=sum(seq for name, seq in last.items() if name.startswith(_LOG_PREFIX)),
        wakes=last.get("WAKES", 0),
        requests=last.get("TOOLS", 0),
        feed=last.get("EVENTS", 0),
        synced=sum(seq for name, seq in last.items() if name in _SYNCED),
        transactions=await _transactions(dsn),
    )


async def count_published(monitor: str, connection: str) -> int:
    """What the connections of a name have published to a NATS node."""
    async with httpx.AsyncClient(base_url=monitor, trust_env=False) as client:
        connections = (await client.get("/connz")).json()["connections"]
    return sum(int(each["in_msgs"]) for each in connections if each.get("name") == connection)


async def _transactions(dsn: str) -> int:
    """The transactions of the whole server; this question is one of them."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        cursor = await connection.execute("SELECT sum(xact_commit) FROM pg_stat_database")
        row = await cursor.fetchone()
    assert row is not None, "an aggregate has one row"
    return int(row[0])
