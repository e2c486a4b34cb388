"""Times the projector on the whole log and a fresh database."""

import time

import psycopg
from psycopg.conninfo import make_conninfo

from fairlead_cli.bench import server_limits
from fairlead_eventlog.connection import EventLog
from fairlead_projector.projection.rebuild import rebuild

DATABASE = "bench"


async def measure_projection(dsn: str, eventlog: EventLog) -> tuple[float, float, int]:
    """Events per second of the projector and of COPY with the same rows, and the number of rows."""
    await _create_database(dsn)
    fresh = make_conninfo(dsn, dbname=DATABASE)
    start = time.perf_counter()
    await rebuild(fresh, eventlog, progress=lambda _progress: None, reader=DATABASE)
    rebuild_s = time.perf_counter() - start
    async with await psycopg.AsyncConnection.connect(fresh) as connection:
        cursor = await connection.execute(
            "SELECT tenant, session_id, seq, event_id, type, version, time, data::text"
            " FROM projection.session_event"
        )
        rows = list(await cursor.fetchall())
    copy_s = await server_limits.time_copy(fresh, rows)
    return len(rows) / rebuild_s, len(rows) / copy_s, len(rows)


async def _create_database(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        await connection.execute(f"CREATE DATABASE {DATABASE}")
