"""Turns: from a prompt over HTTP to its `step.ended` on the session's event stream."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from fairlead_cli.bench.admissions import sessions
from fairlead_cli.bench.measure import Timing, timing
from fairlead_cli.bench.wire import Wire
from fairlead_eventlog.connection import EventLog
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address

ENDED = b'"type":"session.next.step.ended"'
FAILED = b'"type":"session.next.step.failed"'
CAUGHT_UP = b": caught-up"
TURN_S = 60.0


@dataclass
class Listener:
    """One session's event stream, noting when each of its turns is seen to end."""

    session: str
    posting: Wire
    ended: asyncio.Queue[float] = field(default_factory=asyncio.Queue)

    async def listen(self, wire: Wire, ready: asyncio.Event) -> None:
        unread = b""
        async for piece in wire.stream(f"/api/session/{self.session}/event"):
            now = time.perf_counter()
            frames, _, unread = (unread + piece).rpartition(b"\n\n")
            if not ready.is_set():
                # What was replayed is the past: only turns after it are timed.
                _, caught_up, frames = frames.rpartition(CAUGHT_UP)
                if not caught_up:
                    continue
                ready.set()
            assert FAILED not in frames, "a turn failed"
            for _ in range(frames.count(ENDED)):
                self.ended.put_nowait(now)

    async def take(self, text: str) -> float:
        """One whole turn; the seconds it took."""
        began = time.perf_counter()
        await self.posting.post(f"/api/session/{self.session}/prompt", {"prompt": {"text": text}})
        async with asyncio.timeout(TURN_S):
            return await self.ended.get() - began


@asynccontextmanager
async def listening(url: str, session: str) -> AsyncIterator[Listener]:
    """A listener that has caught up."""
    async with Wire.open(url) as posting, Wire.open(url) as streaming:
        listener, ready = Listener(session, posting), asyncio.Event()
        task = asyncio.create_task(listener.listen(streaming, ready))
        try:
            async with asyncio.timeout(TURN_S):
                await ready.wait()
            yield listener
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def turns(url: str, eventlog: EventLog, *, at_once: int, each: int) -> Timing:
    """`at_once` sessions, each taking turns one after another."""
    mine = await sessions(eventlog, at_once)
    async with AsyncExitStack() as stack:
        listeners = [await stack.enter_async_context(listening(url, one)) for one in mine]
        await asyncio.gather(*(listener.take("warm") for listener in listeners))
        taken: list[float] = []

        async def go(listener: Listener) -> None:
            for number in range(each):
                taken.append(await listener.take(f"turn {number}"))  # noqa: PERF401

        began = time.perf_counter()
        await asyncio.gather(*(go(listener) for listener in listeners))
        return timing(taken, time.perf_counter() - began)


async def in_session(url: str, session: str, *, each: int) -> Timing:
    """Turns of one given session, one after another."""
    async with listening(url, session) as listener:
        await listener.take("warm")
        began = time.perf_counter()
        taken = [await listener.take(f"turn {number}") for number in range(each)]
        return timing(taken, time.perf_counter() - began)


async def first_byte(url: str, eventlog: EventLog, *, each: int) -> Timing:
    """From a prompt to the first fragment that the provider sent, as a listener hears it."""
    (session,) = await sessions(eventlog, 1)
    at = Address(DEFAULT_TENANT, session)
    heard: asyncio.Queue[float] = asyncio.Queue()

    async def hear() -> None:
        async for _ in eventlog.deltas.listen(at):
            heard.put_nowait(time.perf_counter())

    async with listening(url, session) as listener:
        task = asyncio.create_task(hear())
        await listener.take("warm")
        taken: list[float] = []
        for number in range(each):
            while not heard.empty():
                heard.get_nowait()
            began = time.perf_counter()
            await listener.take(f"first {number}")
            taken.append(await heard.get() - began)
        task.cancel()
    return timing(taken, sum(taken))
