"""Work queues on JetStream."""

from collections.abc import AsyncIterator
from typing import Final, Self

import orjson
from nats.aio.msg import Msg

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import MESSAGE_ID, NatsLink, NoAnswer
from fairlead_eventlog.jetstream.messages import store_message
from fairlead_eventlog.jetstream.pull import Pull
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slot, Slots

# The server also redelivers into the open pull of a paused process. So a pull ends before a deadline.
PULL_EXPIRES_S: Final = 1.0


class JetStreamJob:
    """One delivery of a message of a work queue."""

    def __init__(self, link: NatsLink, msg: Msg, slot: Slot) -> None:
        self._link = link
        self._msg = msg
        self._slot = slot

    @property
    def subject(self) -> str:
        return self._msg.subject

    @property
    def payload(self) -> bytes:
        return self._msg.data

    @property
    def sequence(self) -> int:
        return int(self._msg.reply.split(".")[5])

    @property
    def deliveries(self) -> int:
        return int(self._msg.reply.split(".")[4])

    async def extend(self) -> None:
        await self._link.send(self._msg.reply, b"+WPI")

    async def ack(self) -> None:
        try:
            await self._link.request(self._msg.reply, b"+ACK")
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("the acknowledgement was not confirmed") from error

    async def retry_later(self, delay_s: float) -> None:
        body = orjson.dumps({"delay": int(delay_s * 1e9)})
        await self._link.send(self._msg.reply, b"-NAK " + body)

    def release(self) -> None:
        self._slot.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self.release()


class JetStreamWorkQueues:
    """Work queues, each a stream with one durable consumer per kind of worker."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def put(self, subject: str, payload: bytes, *, once: str | None = None) -> None:
        headers = {MESSAGE_ID: once} if once else None
        await store_message(self._link, subject, payload, headers)

    async def take(self, stream: str, consumer: str, slots: Slots) -> AsyncIterator[Job]:
        pull = Pull(
            self._link, stream, consumer, capacity=lambda: slots.free, expires_s=PULL_EXPIRES_S
        )
        async for batch in pull.batches():
            for msg in batch:
                # A job occupies its slot when the taker gets it: an unread batch must not leak slots.
                yield JetStreamJob(self._link, msg, slots.occupy(pull.ask_again))
