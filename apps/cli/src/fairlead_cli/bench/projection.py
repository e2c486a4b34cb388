"""Projection: how fast the projector folds the whole log into a fresh database."""

import time

import psycopg
from psycopg.conninfo import make_conninfo

from fairlead_cli.bench import raw
from fairlead_eventlog.connection import EventLog
from fairlead_projector.projection.rebuild import rebuild

DATABASE = "bench"


async def projected(dsn: str, eventlog: EventLog) -> tuple[float, float, int]:
    """Events per second by the projector and by raw COPY of the same event rows; their number."""
    await _database(dsn)
    fresh = make_conninfo(dsn, dbname=DATABASE)
    began = time.perf_counter()
    await rebuild(fresh, eventlog, progress=lambda _progress: None, reader=DATABASE)
    elapsed = time.perf_counter() - began
    async with await psycopg.AsyncConnection.connect(fresh) as connection:
        cursor = await connection.execute(
            "SELECT tenant, session_id, seq, event_id, type, version, time, data::text"
            " FROM projection.session_event"
        )
        rows = list(await cursor.fetchall())
    copied = await raw.copy(fresh, rows)
    return len(rows) / elapsed, len(rows) / copied, len(rows)


async def _database(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        await connection.execute(f"CREATE DATABASE {DATABASE}")
