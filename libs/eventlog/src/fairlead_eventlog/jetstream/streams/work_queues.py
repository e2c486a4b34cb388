"""Work queues on JetStream."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final
from weakref import finalize

import orjson
from nats.aio.msg import Msg

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import MESSAGE_ID, Link, NoAnswer
from fairlead_eventlog.jetstream.messages import store_message
from fairlead_eventlog.jetstream.pull import Pull
from fairlead_eventlog.ports import Job, Slots

# Redeliveries also go into the open pull of a paused process, so a pull must end before a deadline.
PULL_EXPIRES_S: Final = 1.0


class JetStreamJob:
    """A delivered message of a work queue."""

    def __init__(self, link: Link, msg: Msg) -> None:
        self._link = link
        self._msg = msg

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


class JetStreamWorkQueues:
    """Work queues."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def put(self, subject: str, payload: bytes, *, once: str | None = None) -> None:
        headers = {MESSAGE_ID: once} if once else None
        await store_message(self._link, subject, payload, headers)

    async def take(self, stream: str, consumer: str, slots: Slots) -> AsyncIterator[Job]:
        pull = Pull(self._link, stream, consumer, slots=slots, expires_s=PULL_EXPIRES_S)
        loop = asyncio.get_running_loop()
        async for batch in pull.batches():
            for msg in batch:
                yield _told(JetStreamJob(self._link, msg), loop, pull)


def _told(job: JetStreamJob, loop: asyncio.AbstractEventLoop, pull: Pull) -> JetStreamJob:
    """A job whose end makes a full taker look for more at once."""

    def dropped() -> None:
        if not loop.is_closed():
            loop.call_soon(pull.look)

    finalize(job, dropped).atexit = False
    return job
