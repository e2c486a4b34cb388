"""Work queues on JetStream."""

from collections.abc import AsyncIterator

from fairlead_eventlog.jetstream.link import MESSAGE_ID, NatsLink
from fairlead_eventlog.jetstream.messages import store_message
from fairlead_eventlog.jetstream.pull import Pull
from fairlead_eventlog.jetstream.streams.fair_queue import FairQueue
from fairlead_eventlog.jetstream.streams.job import PULL_EXPIRES_S, JetStreamJob
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_schema.identity.request_context import trace_headers


class JetStreamWorkQueues:
    """Work queues, each a stream with one durable consumer per kind of worker."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def put(self, subject: str, payload: bytes, *, once: str | None = None) -> None:
        headers = trace_headers()
        if once:
            headers = {**(headers or {}), MESSAGE_ID: once}
        await store_message(self._link, subject, payload, headers)

    async def take(self, stream: str, consumer: str, slots: Slots) -> AsyncIterator[Job]:
        pull = Pull(
            self._link, stream, consumer, capacity=lambda: slots.free, expires_s=PULL_EXPIRES_S
        )
        async for batch in pull.batches():
            for msg in batch:
                # A job occupies its slot when the taker gets it: an unread batch must not leak slots.
                yield JetStreamJob(self._link, msg, slots.occupy(pull.ask_again))

    async def is_first(self, stream: str, job: Job) -> bool:
        first = await self._link.first_message(stream, job.subject)
        return first is None or first.sequence >= job.sequence

    def take_fairly(self, stream: str, consumer: str, slots: Slots) -> AsyncIterator[Job]:
        return FairQueue(self._link, stream, consumer, slots).jobs()
