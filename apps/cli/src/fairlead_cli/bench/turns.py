"""Times turns, from a prompt over HTTP to its `step.ended` on the session's event stream."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from fairlead_cli.bench.admissions import create_sessions
from fairlead_cli.bench.load_connection import LoadConnection
from fairlead_cli.bench.measurement import Timing, summarise
from fairlead_eventlog.connection import EventLog
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address

ENDED = b'"type":"session.next.step.ended"'
FAILED = b'"type":"session.next.step.failed"'
CAUGHT_UP = b": caught-up"
TURN_S = 60.0


@dataclass
class Listener:
    """Follows one session's event stream and queues the time at which each turn ends."""

    session: str
    poster: LoadConnection
    stream: str = "event"
    """`event` has what the log has, `stream` the live fragments too."""
    turn_ends: asyncio.Queue[float] = field(default_factory=asyncio.Queue)

    async def listen(self, connection: LoadConnection, ready: asyncio.Event) -> None:
        unread = b""
        async for piece in connection.stream(f"/api/session/{self.session}/{self.stream}"):
            now = time.perf_counter()
            frames, _, unread = (unread + piece).rpartition(b"\n\n")
            if not ready.is_set():
                # Turns in the replayed history are not timed.
                _, caught_up, frames = frames.rpartition(CAUGHT_UP)
                if not caught_up:
                    continue
                ready.set()
            assert FAILED not in frames, "a turn failed"
            for _ in range(frames.count(ENDED)):
                self.turn_ends.put_nowait(now)

    async def take_turn(self, text: str) -> float:
        """Run one whole turn and return its seconds."""
        start = time.perf_counter()
        await self.poster.post(f"/api/session/{self.session}/prompt", {"prompt": {"text": text}})
        async with asyncio.timeout(TURN_S):
            return await self.turn_ends.get() - start


@asynccontextmanager
async def open_listener(
    url: str, session: str, *, stream: str = "event"
) -> AsyncIterator[Listener]:
    """A listener that has caught up with its session."""
    async with LoadConnection.open(url) as posting, LoadConnection.open(url) as streaming:
        listener, ready = Listener(session, posting, stream), asyncio.Event()
        task = asyncio.create_task(listener.listen(streaming, ready))
        try:
            async with asyncio.timeout(TURN_S):
                await ready.wait()
            yield listener
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def time_turns(url: str, eventlog: EventLog, *, at_once: int, each: int) -> Timing:
    """Time turns of `at_once` sessions at once; each session takes its turns one after another."""
    session_ids = await create_sessions(eventlog, at_once)
    async with AsyncExitStack() as stack:
        listeners = [
            await stack.enter_async_context(open_listener(url, session_id))
            for session_id in session_ids
        ]
        await asyncio.gather(*(listener.take_turn("warm") for listener in listeners))
        durations: list[float] = []

        async def take_turns(listener: Listener) -> None:
            for number in range(each):
                durations.append(await listener.take_turn(f"turn {number}"))  # noqa: PERF401

        start = time.perf_counter()
        await asyncio.gather(*(take_turns(listener) for listener in listeners))
        return summarise(durations, time.perf_counter() - start)


async def time_first_byte(url: str, eventlog: EventLog, *, each: int) -> Timing:
    """The time from a prompt to the first delta, as a listener receives it."""
    (session,) = await create_sessions(eventlog, 1)
    at = Address(DEFAULT_TENANT, session)
    arrivals: asyncio.Queue[float] = asyncio.Queue()

    async def listen_deltas() -> None:
        async for _ in eventlog.deltas.listen(at):
            arrivals.put_nowait(time.perf_counter())

    async with open_listener(url, session) as listener:
        task = asyncio.create_task(listen_deltas())
        await listener.take_turn("warm")
        durations: list[float] = []
        for number in range(each):
            while not arrivals.empty():
                arrivals.get_nowait()
            start = time.perf_counter()
            await listener.take_turn(f"first {number}")
            durations.append(await arrivals.get() - start)
        task.cancel()
    return summarise(durations, sum(durations))
