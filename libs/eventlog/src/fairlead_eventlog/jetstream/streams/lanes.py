"""Lanes: the consumers of the wakes stream, one for each tenant."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from nats.aio.msg import Msg

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.link import NatsLink, ServerRefusal, stream_error
from fairlead_eventlog.jetstream.pull import Pull
from fairlead_eventlog.jetstream.streams.work_queues import PULL_EXPIRES_S, JetStreamJob
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_eventlog.streams import WAKES
from fairlead_schema.subjects import LANE_OPENED

LIST_LANES_S: Final = 5.0


class _Arrival(NamedTuple):
    """A wake that a lane delivered and nobody has taken yet."""

    lane: str
    pull: Pull
    msg: Msg


class Lanes:
    """Pulls from all lanes at once, each with its fair share of the free slots."""

    def __init__(self, link: NatsLink, slots: Slots) -> None:
        self._link = link
        self._slots = slots
        self._arrivals: asyncio.Queue[_Arrival | LogError] = asyncio.Queue()
        self._pulls: dict[str, asyncio.Task[None]] = {}
        self._busy: Counter[str] = Counter()

    async def jobs(self) -> AsyncIterator[Job]:
        """Wakes of all lanes as they come. Raises LogError when a lane cannot be pulled."""
        opened = asyncio.Event()

        async def on_opened(_msg: Msg) -> None:
            opened.set()

        subscription = await self._link.client.subscribe(LANE_OPENED, cb=on_opened)
        discovery = asyncio.create_task(self._pull_new_lanes(opened))
        try:
            while True:
                arrival = await self._arrivals.get()
                if isinstance(arrival, LogError):
                    raise arrival
                yield self._job(arrival)
        finally:
            discovery.cancel()
            for pull in self._pulls.values():
                pull.cancel()
            with suppress(Exception):
                await subscription.unsubscribe()

    def _job(self, arrival: _Arrival) -> Job:
        slot = self._slots.occupy(partial(self._on_release, arrival.lane, arrival.pull))
        return JetStreamJob(self._link, arrival.msg, slot)

    def _on_release(self, lane: str, pull: Pull) -> None:
        self._busy[lane] -= 1
        pull.ask_again()

    async def _pull_new_lanes(self, lane_opened: asyncio.Event) -> None:
        """Start a pull for every lane, and for each new one.

        Lists the lanes again when one is announced, and from time to time in case an announcement
        was lost.
        """
        try:
            while True:
                for lane in await lane_names(self._link):
                    if lane not in self._pulls:
                        self._pulls[lane] = asyncio.create_task(self._pull(lane))
                lane_opened.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LIST_LANES_S):
                        await lane_opened.wait()
        except LogError as error:
            self._arrivals.put_nowait(error)

    async def _pull(self, lane: str) -> None:
        share = partial(self._share, lane)
        pull = Pull(self._link, WAKES.name, lane, capacity=share, expires_s=PULL_EXPIRES_S)
        try:
            async for batch in pull.batches():
                self._busy[lane] += len(batch)
                for msg in batch:
                    self._arrivals.put_nowait(_Arrival(lane, pull, msg))
        except LogError as error:
            self._arrivals.put_nowait(error)

    def _share(self, lane: str) -> int:
        """The lane's part of the free slots. Without a free slot, an idle lane may still have one."""
        free, lanes = self._slots.free - self._arrivals.qsize(), max(1, len(self._pulls))
        if free > 0:
            return max(1, free // lanes)
        return 1 if lanes > 1 and self._busy[lane] <= 0 else 0


async def lane_names(link: NatsLink) -> list[str]:
    """The names of all lanes."""
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
