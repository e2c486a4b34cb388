"""Replay: how long it takes to fold a long session, and to stream it to a client."""

import asyncio
import time
from statistics import median

from fairlead_cli.bench.admissions import sessions
from fairlead_cli.bench.long_sessions import live
from fairlead_cli.bench.wire import Wire
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.session_cache import SessionCache
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_session.fold.session_fold import SESSION_FOLD

REPEATS = 3


async def replays(url: str, eventlog: EventLog, *, events: int) -> tuple[float, float]:
    """Milliseconds to fold a cold session of that many events, and to stream it whole."""
    (session,) = await sessions(eventlog, 1)
    at = Address(DEFAULT_TENANT, session)
    await live(eventlog, at, events=events, compacted=False)
    folds, streams = [], []
    for _ in range(REPEATS):
        cold = SessionCache(eventlog.log, eventlog.snapshots, SESSION_FOLD, capacity=1)
        began = time.perf_counter()
        await cold.load(at)
        folds.append(time.perf_counter() - began)
        began = time.perf_counter()
        await _streamed(url, session)
        streams.append(time.perf_counter() - began)
    return median(folds) * 1000, median(streams) * 1000


async def _streamed(url: str, session: str) -> None:
    tail = b""
    async with asyncio.timeout(60), Wire.open(url) as wire:
        async for piece in wire.stream(f"/api/session/{session}/event"):
            tail = tail[-32:] + piece
            if b": caught-up" in tail:
                return
