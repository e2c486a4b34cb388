"""Measures what live clients cost a gateway: processor time, memory, and the wait for events."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Self

from fairlead_cli.bench.cost.calibration import Calibration
from fairlead_cli.bench.cost.process_usage import read_usage
from fairlead_cli.bench.measurement import summarise
from fairlead_cli.bench.streams.client import StreamClient, open_streams
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import START
from fairlead_schema.delta import TextDelta
from fairlead_schema.events import SessionCreated
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids

FRAGMENTS_PER_S: Final = 100
WAIT_S: Final = 60.0
QUIET_S: Final = 5.0


class ProcessorMeter:
    """The processor time of one process within a block, normalised by a fixed loop."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._calibration = Calibration()
        self._began_ms = 0.0
        self.microseconds = 0.0

    async def __aenter__(self) -> Self:
        await self._calibration.__aenter__()
        self._began_ms = self._read_ms()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        used_ms = self._read_ms() - self._began_ms
        await self._calibration.__aexit__()
        self.microseconds = used_ms * self._calibration.factor * 1000

    def _read_ms(self) -> float:
        return read_usage({"": [self._pid]})[""].cpu_ms


async def measure_one_session(
    url: str, gateway_pid: int, eventlog: EventLog, *, clients: int, fragments: int
) -> dict[str, float]:
    """Processor time of the gateway for each live fragment and further client of one session."""
    (session,) = await _create_sessions(eventlog, 1)
    alone, _ = await _time_fragments(url, gateway_pid, eventlog, [session], fragments)
    crowd, wait_ms = await _time_fragments(
        url, gateway_pid, eventlog, [session] * clients, fragments
    )
    return {
        "live fragment to one client, µs": alone / fragments,
        f"live fragment to {clients:,} clients, µs per further one": (crowd - alone)
        / (fragments * (clients - 1)),
        f"last fragment to {clients:,} clients, ms": wait_ms,
    }


async def measure_many_sessions(
    url: str, gateway_pid: int, eventlog: EventLog, *, sessions: int
) -> dict[str, float]:
    """Memory and processor time of the gateway for one client on each of many sessions."""
    session_ids = await _create_sessions(eventlog, sessions)
    before_kib = _memory_kib(gateway_pid)
    opening, quiet, sending = (ProcessorMeter(gateway_pid) for _ in range(3))
    async with asyncio.timeout(2 * WAIT_S), AsyncExitStack() as held:
        async with opening:
            streams = await held.enter_async_context(open_streams(url, session_ids))
        memory_kib = _memory_kib(gateway_pid) - before_kib
        async with quiet:
            await asyncio.sleep(QUIET_S)
        began = time.perf_counter()
        async with sending:
            for session in session_ids:
                await _send_fragment(eventlog, session)
            await _wait_for_fragments(streams, 1)
        took_s = time.perf_counter() - began
        firsts = summarise([stream.first_event_s for stream in streams], took_s)
    name = f"{sessions:,} clients of {sessions:,} sessions"
    return {
        f"{name}, first event p50 ms": firsts.p50_ms,
        f"{name}, first event p99 ms": firsts.p99_ms,
        f"{name}, open a stream, µs": opening.microseconds / sessions,
        f"{name}, KiB each": memory_kib / sessions,
        f"{name}, % of a core while quiet": quiet.microseconds / QUIET_S / 1e4,
        f"{name}, one fragment each, ms": took_s * 1000,
        f"{name}, one fragment, µs": sending.microseconds / sessions,
    }


async def _time_fragments(
    url: str, gateway_pid: int, eventlog: EventLog, sessions: Sequence[str], fragments: int
) -> tuple[float, float]:
    """Processor time of the gateway in µs for a paced answer, and how late its end arrives in ms."""
    async with asyncio.timeout(WAIT_S), open_streams(url, sessions) as streams:
        await _reach_all(eventlog, streams, sessions[0])
        async with ProcessorMeter(gateway_pid) as meter:
            for _ in range(fragments):
                await _send_fragment(eventlog, sessions[0])
                await asyncio.sleep(1 / FRAGMENTS_PER_S)
            began = time.perf_counter()
            await _wait_for_fragments(streams, fragments)
            late_s = time.perf_counter() - began
    return meter.microseconds, late_s * 1000


async def _reach_all(eventlog: EventLog, streams: Sequence[StreamClient], session: str) -> None:
    """Send fragments until every client gets them, and count from there."""
    while any(not stream.fragments for stream in streams):
        await _send_fragment(eventlog, session)
        await asyncio.sleep(0.2)
    await asyncio.sleep(0.5)
    for stream in streams:
        stream.fragments = 0


async def _wait_for_fragments(streams: Sequence[StreamClient], fragments: int) -> None:
    while any(stream.fragments < fragments for stream in streams):
        assert all(stream.is_open for stream in streams), "the gateway cut off a client"
        await asyncio.sleep(0.001)


async def _send_fragment(eventlog: EventLog, session: str) -> None:
    delta = TextDelta(assistant_message_id="msg_bench", text_id="t", delta="the wind is fair, ")
    await eventlog.deltas.send(Address(DEFAULT_TENANT, session), delta)


async def _create_sessions(eventlog: EventLog, count: int) -> list[str]:
    """Sessions straight in the log, because ingest is not measured here."""
    created = SessionCreated(title="", project_id="bench", location=LocationRef(directory="/"))
    slots = asyncio.Semaphore(64)

    async def create_session() -> str:
        at, draft = Address(DEFAULT_TENANT, ids.session_id()), _draft(created)
        async with slots:
            await eventlog.log.append(at, ids.commit_id(), (draft,), after=START)
        return at.session_id

    return list(await asyncio.gather(*(create_session() for _ in range(count))))


def _draft(event: SessionCreated) -> Draft:
    return Draft(ids.event_id(), ids.now_ms(), event)


def _memory_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
