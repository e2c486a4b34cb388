"""Timers as scheduled messages of a stream."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.messages import store_message
from fairlead_eventlog.jetstream.streams.work_queues import JetStreamWorkQueues
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_schema import subjects
from fairlead_schema.subjects import Address


class JetStreamTimers:
    """A timer is a scheduled message: the server publishes the due message at its time."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._work = JetStreamWorkQueues(link)

    async def wake_at(self, at: Address, time_ms: int) -> None:
        when = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat().replace("+00:00", "Z")
        headers = {"Nats-Schedule": f"@at {when}", "Nats-Schedule-Target": subjects.timer_due(at)}
        await store_message(self._link, subjects.timer(at), b"", headers)

    def take_due(self, slots: Slots) -> AsyncIterator[Job]:
        return self._work.take("TIMERS", "due", slots)
