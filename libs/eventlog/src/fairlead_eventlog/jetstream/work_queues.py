"""Work queues and timers on JetStream."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final
from weakref import finalize

import orjson
from nats.aio.msg import Msg

from fairlead_eventlog.errors import LogUnavailable, Unanswered
from fairlead_eventlog.jetstream.link import MESSAGE_ID, Link, NoAnswer, ServerRefusal, missing
from fairlead_eventlog.jetstream.pull import Pull
from fairlead_eventlog.ports import Job, Slots
from fairlead_schema import subjects
from fairlead_schema.subjects import Address

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

    async def keep(self) -> None:
        await self._link.send(self._msg.reply, b"+WPI")

    async def done(self) -> None:
        try:
            await self._link.request(self._msg.reply, b"+ACK")
        except (NoAnswer, Unanswered) as error:
            raise LogUnavailable("the acknowledgement was not confirmed") from error

    async def later(self, delay_s: float) -> None:
        body = orjson.dumps({"delay": int(delay_s * 1e9)})
        await self._link.send(self._msg.reply, b"-NAK " + body)


class JetStreamWork:
    """Work queues."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def put(self, subject: str, payload: bytes, *, once: str | None = None) -> None:
        headers = {MESSAGE_ID: once} if once else None
        await stored(self._link, subject, payload, headers)

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


class JetStreamTimers:
    """Timers as scheduled messages: the server publishes the due message when the time comes."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._work = JetStreamWork(link)

    async def wake_at(self, at: Address, time_ms: int) -> None:
        when = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat().replace("+00:00", "Z")
        headers = {"Nats-Schedule": f"@at {when}", "Nats-Schedule-Target": subjects.timer_due(at)}
        await stored(self._link, subjects.timer(at), b"", headers)

    def due(self, slots: Slots) -> AsyncIterator[Job]:
        return self._work.take("TIMERS", "due", slots)


async def stored(
    link: Link, subject: str, payload: bytes, headers: dict[str, str] | None = None
) -> int:
    """Store one message, with every failure in the port's words."""
    try:
        return await link.store(subject, payload, headers=headers)
    except ServerRefusal as refusal:
        raise LogUnavailable(str(refusal)) from refusal
    except (NoAnswer, Unanswered) as error:
        raise LogUnavailable(f"{subject} was not acknowledged") from error


async def forget(link: Link, stream: str, subject: str, *, before: int | None = None) -> None:
    """Remove a subject's messages from a stream: those before a sequence, or all of them."""
    wanted = {"filter": subject} if before is None else {"filter": subject, "seq": before}
    try:
        await link.api(f"STREAM.PURGE.{stream}", wanted)
    except ServerRefusal as refusal:
        raise missing(refusal, stream) from refusal
