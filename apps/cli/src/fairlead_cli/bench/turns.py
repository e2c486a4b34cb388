"""Turns: from a prompt over HTTP to its `step.ended` on the session's event stream."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field

import httpx

from fairlead_cli.bench.admissions import sessions
from fairlead_cli.bench.measure import Timing, timing
from fairlead_eventlog.connection import EventLog
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address

ENDED = b'"type":"session.next.step.ended"'
FAILED = b'"type":"session.next.step.failed"'
CAUGHT_UP = b": caught-up"
TURN_S = 60.0


@dataclass
class Listener:
    """One session's event stream, counting the turns it sees end."""

    session: str
    ended: asyncio.Queue[float] = field(default_factory=asyncio.Queue)

    async def listen(self, client: httpx.AsyncClient, ready: asyncio.Event) -> None:
        path = f"/api/session/{self.session}/event"
        async with client.stream("GET", path, timeout=None) as answer:
            answer.raise_for_status()
            unread = b""
            async for chunk in answer.aiter_raw():
                now = time.perf_counter()
                frames, _, unread = (unread + chunk).rpartition(b"\n\n")
                if not ready.is_set():
                    # What was replayed is the past: only turns after it are timed.
                    _, caught_up, frames = frames.rpartition(CAUGHT_UP)
                    if not caught_up:
                        continue
                    ready.set()
                assert FAILED not in frames, "a turn failed"
                for _ in range(frames.count(ENDED)):
                    self.ended.put_nowait(now)


@asynccontextmanager
async def listening(client: httpx.AsyncClient, session: str) -> AsyncIterator[Listener]:
    """A listener that has caught up."""
    listener, ready = Listener(session), asyncio.Event()
    task = asyncio.create_task(listener.listen(client, ready))
    async with asyncio.timeout(TURN_S):
        await ready.wait()
    try:
        yield listener
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def take(client: httpx.AsyncClient, listener: Listener, text: str) -> float:
    """One whole turn; the seconds it took."""
    began = time.perf_counter()
    body = {"prompt": {"text": text}}
    answer = await client.post(f"/api/session/{listener.session}/prompt", json=body)
    answer.raise_for_status()
    async with asyncio.timeout(TURN_S):
        return await listener.ended.get() - began


async def turns(
    client: httpx.AsyncClient, eventlog: EventLog, *, at_once: int, each: int
) -> Timing:
    """`at_once` sessions, each taking turns one after another."""
    mine = await sessions(eventlog, at_once)
    async with AsyncExitStack() as stack:
        listeners = [await stack.enter_async_context(listening(client, one)) for one in mine]
        await asyncio.gather(*(take(client, listener, "warm") for listener in listeners))
        taken: list[float] = []

        async def go(listener: Listener) -> None:
            for number in range(each):
                taken.append(await take(client, listener, f"turn {number}"))  # noqa: PERF401

        began = time.perf_counter()
        await asyncio.gather(*(go(listener) for listener in listeners))
        return timing(taken, time.perf_counter() - began)


async def in_session(client: httpx.AsyncClient, session: str, *, each: int) -> Timing:
    """Turns of one given session, one after another."""
    async with listening(client, session) as listener:
        await take(client, listener, "warm")
        began = time.perf_counter()
        taken = [await take(client, listener, f"turn {number}") for number in range(each)]
        return timing(taken, time.perf_counter() - began)


async def first_byte(client: httpx.AsyncClient, eventlog: EventLog, *, each: int) -> Timing:
    """From a prompt to the first fragment that the provider sent, as a listener hears it."""
    (session,) = await sessions(eventlog, 1)
    at = Address(DEFAULT_TENANT, session)
    heard: asyncio.Queue[float] = asyncio.Queue()

    async def hear() -> None:
        async with aclosing(eventlog.deltas.listen(at)) as deltas:  # type: ignore[type-var]
            async for _ in deltas:
                heard.put_nowait(time.perf_counter())

    async with listening(client, session) as listener:
        task = asyncio.create_task(hear())
        await take(client, listener, "warm")
        taken: list[float] = []
        for number in range(each):
            while not heard.empty():
                heard.get_nowait()
            began = time.perf_counter()
            await take(client, listener, f"first {number}")
            taken.append(await heard.get() - began)
        task.cancel()
    return timing(taken, sum(taken))
