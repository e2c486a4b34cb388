"""Wakes in memory."""

from collections.abc import AsyncIterator

from fairlead_eventlog.memory.work_queues import MemoryQueue
from fairlead_eventlog.ports import Job, Slots
from fairlead_schema import subjects
from fairlead_schema.subjects import Address


class MemoryWakes:
    """Wakes: one per session, a second is refused."""

    def __init__(self) -> None:
        self.queue = MemoryQueue()

    async def wake(self, at: Address) -> bool:
        subject = subjects.wake(at)
        if any(job.subject == subject for job in self.queue.jobs):
            return False
        self.queue.add(subject, b"")
        return True

    async def renew(self, at: Address) -> bool:
        there = [job for job in self.queue.jobs if job.subject == subjects.wake(at)]
        if any(job.times == 0 for job in there):
            return False
        for job in there:
            self.queue.remove(job)
        return await self.wake(at)

    def take(self, slots: Slots) -> AsyncIterator[Job]:
        return self.queue.take(slots)
