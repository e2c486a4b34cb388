"""Lanes: the consumers of the wakes stream, one for each tenant."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Final
from weakref import finalize

from nats.aio.msg import Msg

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.link import (
    Link,
    ServerRefusal,
    stream_error,
)
from fairlead_eventlog.jetstream.pull import Pull
from fairlead_eventlog.jetstream.streams.work_queues import PULL_EXPIRES_S, JetStreamJob
from fairlead_eventlog.ports import Job, Slots
from fairlead_eventlog.streams import WAKES
from fairlead_schema.subjects import ROOT

LANE_OPENED: Final = f"{ROOT}.lane"
LOOK_S: Final = 5.0


class Lanes:
    """Pulls every lane at once, each with its fair share of the free slots."""

    def __init__(self, link: Link, slots: Slots) -> None:
        self._link = link
        self._slots = slots
        self._arrived: asyncio.Queue[Job | LogError] = asyncio.Queue()
        self._pulls: dict[str, asyncio.Task[None]] = {}
        self._held: Counter[str] = Counter()
        self._loop = asyncio.get_running_loop()

    async def jobs(self) -> AsyncIterator[Job]:
        opened = asyncio.Event()

        async def hear(_msg: Msg) -> None:
            opened.set()

        subscription = await self._link.client.subscribe(LANE_OPENED, cb=hear)
        watching = asyncio.create_task(self._watch(opened))
        try:
            while True:
                yield await self._next()  # Without a name: the last one would count for ever.
        finally:
            watching.cancel()
            for pull in self._pulls.values():
                pull.cancel()
            with suppress(Exception):
                await subscription.unsubscribe()

    async def _next(self) -> Job:
        arrived = await self._arrived.get()
        if isinstance(arrived, LogError):
            raise arrived
        return arrived

    async def _watch(self, opened: asyncio.Event) -> None:
        """Pull from every lane there is; a new one is told, and looked for now and then."""
        try:
            while True:
                for name in await lane_names(self._link):
                    if name not in self._pulls:
                        self._pulls[name] = asyncio.create_task(self._pull(name))
                opened.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await opened.wait()
        except LogError as error:
            self._arrived.put_nowait(error)

    async def _pull(self, name: str) -> None:
        share = partial(self._share, name)
        pull = Pull(self._link, WAKES.name, name, slots=share, expires_s=PULL_EXPIRES_S)
        try:
            async for batch in pull.batches():
                for msg in batch:
                    self._arrived.put_nowait(self._job(name, msg, pull))
        except LogError as error:
            self._arrived.put_nowait(error)

    def _job(self, name: str, msg: Msg, pull: Pull) -> Job:
        """A job that counts against its lane for as long as anybody holds it."""
        job = JetStreamJob(self._link, msg)
        self._held[name] += 1
        finalize(job, self._dropped, name, pull).atexit = False
        return job

    def _dropped(self, name: str, pull: Pull) -> None:
        """Nobody holds the job any more. Whoever did counts it out a moment later: look then."""
        self._held[name] -= 1
        if not self._loop.is_closed():
            self._loop.call_soon(pull.look)

    def _share(self, name: str) -> int:
        """Free slots are shared. With none free, a lane that holds nothing may still have one."""
        free, lanes = self._slots() - self._arrived.qsize(), max(1, len(self._pulls))
        if free > 0:
            return max(1, free // lanes)
        return 1 if lanes > 1 and self._held[name] <= 0 else 0


async def lane_names(link: Link) -> list[str]:
    """The lanes there are."""
    names: list[str] = []
    while True:
        try:
            answer = await link.api(f"CONSUMER.NAMES.{WAKES.name}", {"offset": len(names)})
        except ServerRefusal as refusal:
            raise stream_error(refusal, WAKES.name) from refusal
        page = list(answer.get("consumers") or ())
        names += page
        if not page or len(names) >= int(answer.get("total", 0)):
            return names
