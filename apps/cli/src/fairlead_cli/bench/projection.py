"""Times the projector on the whole log and a fresh database."""

import asyncio
import time
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo

from fairlead_cli.bench import server_limits
from fairlead_cli.bench.admissions import create_sessions
from fairlead_cli.bench.long_sessions import fill_log
from fairlead_eventlog.connection import EventLog
from fairlead_projector.projection.rebuild import RebuildProgress, rebuild
from fairlead_projector.projection.workers.crew import Staffing
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address

DATABASE: Final = "bench"
SESSIONS: Final = 32
ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class ComparedProjection:
    """A rebuild beside COPY of the same rows: events per second, and the ratio of the two."""

    projected_per_s: float
    copied_per_s: float
    ratio: float
    rows: int


async def lengthen_log(eventlog: EventLog, *, events_each: int) -> None:
    """Write sessions straight into the log: in a short one the start of a rebuild is what counts."""
    sessions = await create_sessions(eventlog, SESSIONS)
    places = [Address(DEFAULT_TENANT, session) for session in sessions]
    await asyncio.gather(
        *(fill_log(eventlog, at, until_seq=events_each, compact=False) for at in places)
    )


async def measure_projection(
    dsn: str, eventlog: EventLog, address: NatsAddress, *, processes: int = 1
) -> ComparedProjection:
    """Time a rebuild and COPY in turn; the round whose ratio is the median."""
    staffing = Staffing(address, processes)
    rounds = [await _measure_round(dsn, eventlog, staffing) for _ in range(ROUNDS)]
    return sorted(rounds, key=lambda compared: compared.ratio)[ROUNDS // 2]


async def _measure_round(dsn: str, eventlog: EventLog, staffing: Staffing) -> ComparedProjection:
    await _create_database(dsn)
    fresh = make_conninfo(dsn, dbname=DATABASE)
    start = time.perf_counter()
    await rebuild(fresh, eventlog, progress=_ignore, reader=DATABASE, staffing=staffing)
    rebuild_s = time.perf_counter() - start
    async with await psycopg.AsyncConnection.connect(fresh) as connection:
        cursor = await connection.execute(
            "SELECT tenant, session_id, seq, event_id, type, version, time, data::text"
            " FROM projection.session_event"
        )
        rows = list(await cursor.fetchall())
    copy_s = await server_limits.time_copy(fresh, rows)
    count = len(rows)
    return ComparedProjection(count / rebuild_s, count / copy_s, copy_s / rebuild_s, count)


def _ignore(_progress: RebuildProgress) -> None:
    """Show no progress."""


async def _create_database(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        await connection.execute(f"CREATE DATABASE {DATABASE}")
