"""Wakes in memory."""

from collections.abc import AsyncIterator

from fairlead_eventlog.memory.work_queues import MemoryQueue
from fairlead_eventlog.ports import Job
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.positions import encode_wake
from fairlead_eventlog.slots import Slots
from fairlead_schema import subjects
from fairlead_schema.subjects import Address


class MemoryWakes:
    """Wakes: one per session, a second is refused."""

    def __init__(self) -> None:
        self.queue = MemoryQueue()

    async def wake(
        self, at: Address, *, position: int | None = None, commit: CommitHint | None = None
    ) -> bool:
        subject = subjects.wake(at)
        if any(message.subject == subject for message in self.queue.messages):
            return False
        self.queue.add(subject, encode_wake(position, commit))
        return True

    async def renew(self, at: Address, *, position: int | None = None) -> bool:
        subject = subjects.wake(at)
        wakes = [message for message in self.queue.messages if message.subject == subject]
        if any(wake.deliveries == 0 for wake in wakes):
            return False
        for wake in wakes:
            self.queue.remove(wake)
        return await self.wake(at, position=position)

    def take(self, slots: Slots) -> AsyncIterator[Job]:
        return self.queue.take(slots)
