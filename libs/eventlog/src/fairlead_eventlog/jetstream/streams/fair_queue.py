"""A work queue whose messages tenants share fairly (docs/adr/0027).

A process with free slots pulls. A full process looks through what waits and puts it back for some
seconds. When a slot is free again it recalls one of those messages, of each tenant in turn.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Final

import orjson

from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.pull import Pull, fetch_waiting
from fairlead_eventlog.jetstream.streams.job import PULL_EXPIRES_S, JetStreamJob, deliveries
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_eventlog.tenant_shares import RECALL_S, TenantShares
from fairlead_schema import subjects
from fairlead_schema.ids import TenantId

# A full process looks through the queue so often, or after a quarter of its slots were free once, if that
# is sooner. One look takes so many messages.
LOOK_S: Final = 0.25
LOOK_BATCH: Final = 500
# A process that has put back so many messages looks at no more of them.
PUT_BACK_MAX: Final = 50_000
PUT_BACK_S: Final = 10.0
PUT_BACK_S_MAX: Final = 60.0
# A message is recalled at the latest this long before it comes by itself.
RECALL_MARGIN_S: Final = 0.5
ANNOUNCE_S: Final = 1.0


class FairQueue:
    """Takes the messages of one consumer for one process."""

    def __init__(self, link: NatsLink, stream: str, consumer: str, slots: Slots) -> None:
        self._link = link
        self._stream = stream
        self._consumer = consumer
        self._slots = slots
        self._shares: TenantShares[str] = TenantShares(slots)
        self._pull = Pull(
            link,
            stream,
            consumer,
            capacity=lambda: self._shares.capacity,
            expires_s=PULL_EXPIRES_S,
        )
        self._arrivals: asyncio.Queue[Job | Exception] = asyncio.Queue()
        self._changed = asyncio.Event()
        self._asked_for = 0
        """How many free slots other processes have announced."""
        self._looked_at = float("-inf")
        self._releases = 0
        """How many slots became free since the last look."""
        self._was_full = True
        self._announced_at = float("-inf")

    async def jobs(self) -> AsyncIterator[Job]:
        """Jobs as they come, never more than there are slots. Raises LogError."""
        subject = subjects.free_slots(self._consumer)
        subscription = await self._link.listen(subject, self._on_free_slots)
        tasks = [asyncio.create_task(work) for work in (self._take(), self._share())]
        try:
            while True:
                arrival = await self._arrivals.get()
                if isinstance(arrival, Exception):
                    raise arrival
                yield arrival
        finally:
            for task in tasks:
                task.cancel()
            while not self._arrivals.empty():
                unread = self._arrivals.get_nowait()
                if not isinstance(unread, Exception):
                    unread.release()
            with suppress(Exception):
                await self._return_all()
                await subscription.unsubscribe()

    async def _take(self) -> None:
        """Pull while there are free slots."""
        try:
            async for batch in self._pull.batches():
                await self._receive(batch)
        except Exception as error:  # noqa: BLE001 - `jobs` raises it, and its caller reports it
            self._arrivals.put_nowait(error)

    async def _share(self) -> None:
        """Recall messages for free slots, and look through the queue while there are none."""
        try:
            while True:
                await self._recall()
                await self._announce()
                if not self._should_look() or await self._look() < LOOK_BATCH:
                    await self._wait()
        except Exception as error:  # noqa: BLE001 - `jobs` raises it, and its caller reports it
            self._arrivals.put_nowait(error)

    async def _wait(self) -> None:
        """Wait for a change. Only a process that is full, or that put something back, looks at the time."""
        self._changed.clear()
        busy = self._shares.is_full or self._shares.waiting
        pause_s = RECALL_S if self._shares.expects_recalled else LOOK_S
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s if busy else None):
                await self._changed.wait()

    def _should_look(self) -> bool:
        if not self._shares.is_full or self._shares.waiting >= PUT_BACK_MAX:
            return False
        is_late = time.monotonic() - self._looked_at >= LOOK_S
        return is_late or self._releases * 4 >= self._slots.limit

    async def _look(self) -> int:
        """Receive what waits in the queue now; the answer is how much it was."""
        waiting = await fetch_waiting(self._link, self._stream, self._consumer, LOOK_BATCH)
        await self._receive(waiting)
        if len(waiting) < LOOK_BATCH:
            self._looked_at, self._releases = time.monotonic(), 0
        return len(waiting)

    async def _receive(self, messages: list[InboundMessage]) -> None:
        for message in messages:
            tenant = subjects.tenant(message.subject)
            was_put_back = deliveries(message.reply) > 1
            if self._shares.start(tenant, time.monotonic(), was_put_back=was_put_back):
                slot = self._slots.occupy(partial(self._on_release, tenant))
                self._arrivals.put_nowait(JetStreamJob(self._link, message, slot))
            else:
                await self._put_back(tenant, message)
        self._changed.set()

    async def _put_back(self, tenant: TenantId, message: InboundMessage) -> None:
        delay_s = put_back_s(deliveries(message.reply), time.time(), spread=random.random())  # noqa: S311 - no secret
        until = time.monotonic() + delay_s - RECALL_MARGIN_S
        self._shares.put_back(tenant, message.reply, until=until)
        body = orjson.dumps({"delay": int(delay_s * 1e9)})
        await self._link.send(message.reply, b"-NAK " + body)

    async def _recall(self) -> None:
        now = time.monotonic()
        asked_for, self._asked_for = self._asked_for, 0
        for reply in (*self._shares.recall(now), *self._shares.give_away(asked_for, now)):
            await self._link.send(reply, b"-NAK")
        self._pull.ask_again()

    async def _return_all(self) -> None:
        """Let other processes have at once what this one has put back."""
        for reply in self._shares.give_away(self._shares.waiting, time.monotonic()):
            await self._link.send(reply, b"-NAK")

    async def _announce(self) -> None:
        """Say that this process has free slots again, if others may have put messages back."""
        if self._shares.is_full:
            self._was_full = True
            return
        now = time.monotonic()
        if not self._was_full or self._shares.waiting or now - self._announced_at < ANNOUNCE_S:
            return
        self._was_full, self._announced_at = False, now
        subject = subjects.free_slots(self._consumer)
        await self._link.send(subject, str(self._shares.capacity).encode())

    def _on_free_slots(self, message: InboundMessage) -> None:
        if self._shares.waiting and message.data.isdigit():
            self._asked_for += int(message.data)
            self._changed.set()

    def _on_release(self, tenant: TenantId) -> None:
        self._shares.end(tenant)
        self._releases += 1
        self._changed.set()
        self._pull.ask_again()


def put_back_s(deliveries: int, now: float, *, spread: float) -> float:
    """How long a message waits that is put back: longer each time, and until a whole second.

    The server goes through all messages that wait whenever one of them is due, so many are due in one
    second. The spread, from 0 to 1, keeps a whole crowd from being due in the same second.
    """
    longest_s = min(PUT_BACK_S * float(2 ** (min(deliveries, 10) - 1)), PUT_BACK_S_MAX)
    delay_s = longest_s * (1.0 - spread / 2)
    return delay_s + 1.0 - (now + delay_s) % 1.0
