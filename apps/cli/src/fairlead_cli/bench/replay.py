"""Times the fold of a long session, and its stream to a client."""

import asyncio
import time
from statistics import median

from fairlead_cli.bench.admissions import create_sessions
from fairlead_cli.bench.load_connection import LoadConnection
from fairlead_cli.bench.long_sessions import fill_log, record_history
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.session_cache import SessionCache
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_session.fold.evolve import evolve
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.state.session import Session

REPEATS = 3
FOLDS = 7
WINDOW = 1_000


async def time_replay(url: str, eventlog: EventLog, *, events: int) -> tuple[float, float]:
    """Milliseconds to fold a session of that many events without a cache, and to stream it."""
    (session,) = await create_sessions(eventlog, 1)
    at = Address(DEFAULT_TENANT, session)
    await fill_log(eventlog, at, until_seq=events, compact=False)
    folds, streams = [], []
    for _ in range(REPEATS):
        cold = SessionCache(eventlog.log, eventlog.snapshots, SESSION_FOLD, capacity=1)
        start = time.perf_counter()
        await cold.load(at)
        folds.append(time.perf_counter() - start)
        start = time.perf_counter()
        await _stream_history(url, session)
        streams.append(time.perf_counter() - start)
    return median(folds) * 1000, median(streams) * 1000


def time_fold(*, events: int) -> tuple[float, float]:
    """Milliseconds of processor time to fold a session in memory, and how flat that is.

    Flat means 1: the last events of the session cost as much as its first ones.
    """
    history = record_history(events=events)
    totals, ratios = [], []
    for _ in range(FOLDS):
        # The assignment frees the session of the round before, so the clock starts after it.
        session = Session(id="ses_bench")
        times = [time.process_time()]
        for recorded in history:
            session = evolve(session, recorded)
            if recorded.seq % WINDOW == 0:
                times.append(time.process_time())
        totals.append(time.process_time() - times[0])
        ratios.append((times[-1] - times[-2]) / (times[1] - times[0]))
    return min(totals) * 1000, median(ratios)


async def _stream_history(url: str, session: str) -> None:
    tail = b""
    async with asyncio.timeout(60), LoadConnection.open(url) as connection:
        async for piece in connection.stream(f"/api/session/{session}/event"):
            tail = tail[-32:] + piece
            if b": caught-up" in tail:
                return
