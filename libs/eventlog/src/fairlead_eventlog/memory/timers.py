"""Timers in memory; a test fires them."""

from collections.abc import AsyncIterator

from fairlead_eventlog.memory.work_queues import MemoryQueue
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_schema import subjects
from fairlead_schema.subjects import Address


class MemoryTimers:
    """Timers that a test fires."""

    def __init__(self) -> None:
        self.times: dict[Address, int] = {}
        self._due = MemoryQueue()

    async def wake_at(self, at: Address, time_ms: int) -> None:
        self.times[at] = time_ms

    def fire(self, at: Address) -> None:
        """Make a session's timer due."""
        del self.times[at]
        self._due.add(subjects.timer_due(at), b"")

    def take_due(self, slots: Slots) -> AsyncIterator[Job]:
        return self._due.take(slots)
