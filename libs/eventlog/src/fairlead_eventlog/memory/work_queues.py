"""Work queues in memory: deadlines are the test's to end, everything else is as on the server."""

import asyncio
from collections.abc import AsyncIterator

from fairlead_eventlog.ports import Job, Slots


class MemoryJob:
    """A delivered message; `expire` is what a passed deadline does."""

    def __init__(self, queue: "MemoryQueue", subject: str, payload: bytes, sequence: int) -> None:
        self._queue = queue
        self._sequence = sequence
        self._subject = subject
        self._payload = payload
        self.times = 0
        self.kept = 0

    @property
    def subject(self) -> str:
        return self._subject

    @property
    def payload(self) -> bytes:
        return self._payload

    @property
    def sequence(self) -> int:
        return self._sequence

    @property
    def deliveries(self) -> int:
        return self.times

    async def extend(self) -> None:
        self.kept += 1

    async def ack(self) -> None:
        self._queue.remove(self)

    async def retry_later(self, delay_s: float) -> None:
        if delay_s:
            await asyncio.sleep(0)
        self.expire()

    def expire(self) -> None:
        """Deliver it again."""
        self._queue.again(self)


class MemoryQueue:
    """Messages that wait, and messages that somebody holds."""

    def __init__(self) -> None:
        self.jobs: list[MemoryJob] = []
        self._waiting: asyncio.Queue[MemoryJob] = asyncio.Queue()
        self._last = 0

    def add(self, subject: str, payload: bytes) -> None:
        self._last += 1
        job = MemoryJob(self, subject, payload, self._last)
        self.jobs.append(job)
        self._waiting.put_nowait(job)

    def again(self, job: MemoryJob) -> None:
        if job in self.jobs:
            self._waiting.put_nowait(job)

    def remove(self, job: MemoryJob) -> None:
        if job in self.jobs:
            self.jobs.remove(job)

    async def take(self, slots: Slots) -> AsyncIterator[Job]:
        while True:
            job = await self._waiting.get()
            while slots() <= 0:  # noqa: ASYNC110 - the taker frees slots without telling us
                await asyncio.sleep(0.001)
            if job in self.jobs:
                job.times += 1
                yield job


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
