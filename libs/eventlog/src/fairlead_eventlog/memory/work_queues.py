"""Work queues in memory. A test ends deadlines; everything else is as on the server."""

import asyncio
from collections.abc import AsyncIterator
from time import time
from typing import Self

from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slot, Slots
from fairlead_schema.identity.request_context import CURRENT_TRACE


class MemoryMessage:
    """A stored message, delivered any number of times until it is acknowledged."""

    def __init__(self, queue: "MemoryQueue", subject: str, payload: bytes, sequence: int) -> None:
        self._queue = queue
        self.subject = subject
        self.payload = payload
        self.sequence = sequence
        self.trace = CURRENT_TRACE.get()
        self.stored_ms = int(time() * 1000)
        self.deliveries = 0
        self.extensions = 0
        self.delays: list[float] = []
        self.is_queued = False

    async def ack(self) -> None:
        self._queue.remove(self)

    async def retry_later(self, delay_s: float) -> None:
        self.delays.append(delay_s)
        if delay_s:
            await asyncio.sleep(0)
        self.expire()

    def expire(self) -> None:
        """Deliver the message again, as the server does after the deadline."""
        self._queue.redeliver(self)


class MemoryJob:
    """One delivery of a message."""

    def __init__(self, message: MemoryMessage, slot: Slot) -> None:
        self._message = message
        self._slot = slot
        self._deliveries = message.deliveries

    @property
    def subject(self) -> str:
        return self._message.subject

    @property
    def payload(self) -> bytes:
        return self._message.payload

    @property
    def sequence(self) -> int:
        return self._message.sequence

    @property
    def deliveries(self) -> int:
        return self._deliveries

    @property
    def trace(self) -> str | None:
        return self._message.trace

    @property
    def stored_ms(self) -> int:
        return self._message.stored_ms

    async def extend(self) -> None:
        self._message.extensions += 1

    async def ack(self) -> None:
        await self._message.ack()

    async def retry_later(self, delay_s: float) -> None:
        await self._message.retry_later(delay_s)

    def release(self) -> None:
        self._slot.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self.release()


class MemoryQueue:
    """Messages that wait for a taker, and messages that a taker has and has not acknowledged."""

    def __init__(self) -> None:
        self.messages: list[MemoryMessage] = []
        self._waiting: asyncio.Queue[MemoryMessage] = asyncio.Queue()
        self._last_sequence = 0

    def add(self, subject: str, payload: bytes) -> None:
        self._last_sequence += 1
        message = MemoryMessage(self, subject, payload, self._last_sequence)
        self.messages.append(message)
        self._queue(message)

    def redeliver(self, message: MemoryMessage) -> None:
        if message in self.messages and not message.is_queued:
            self._queue(message)

    def remove(self, message: MemoryMessage) -> None:
        if message in self.messages:
            self.messages.remove(message)

    def _queue(self, message: MemoryMessage) -> None:
        message.is_queued = True
        self._waiting.put_nowait(message)

    async def take(self, slots: Slots) -> AsyncIterator[Job]:
        while True:
            await slots.wait_until_free()
            message = await self._waiting.get()
            message.is_queued = False
            if message in self.messages:
                message.deliveries += 1
                yield MemoryJob(message, slots.occupy())


class MemoryWorkQueues:
    """Work queues by stream name, filled by subject."""

    def __init__(self) -> None:
        self._queues: dict[str, MemoryQueue] = {}
        self._once: set[str] = set()

    def queue(self, stream: str) -> MemoryQueue:
        return self._queues.setdefault(stream, MemoryQueue())

    async def put(self, subject: str, payload: bytes, *, once: str | None = None) -> None:
        if once is not None and once in self._once:
            return
        self._once.add(once or "")
        # `fairlead.tool.…` belongs to TOOLS, `fairlead.prompt.…` to PROMPTS.
        self.queue(subject.split(".")[1].upper() + "S").add(subject, payload)

    def take(self, stream: str, consumer: str, slots: Slots) -> AsyncIterator[Job]:
        assert consumer
        return self.queue(stream).take(slots)

    async def is_first(self, stream: str, job: Job) -> bool:
        return all(
            message.sequence >= job.sequence
            for message in self.queue(stream).messages
            if message.subject == job.subject
        )

    def take_fairly(self, stream: str, consumer: str, slots: Slots) -> AsyncIterator[Job]:
        return self.take(stream, consumer, slots)
