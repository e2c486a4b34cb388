"""One delivery of a message of a work queue on JetStream."""

from typing import Final, Self

import orjson

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import NatsLink, NoAnswer
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.slots import Slot
from fairlead_schema.identity.request_context import TRACE_HEADER, parse_trace

# The server also redelivers into the open pull of a paused process. So a pull ends before a deadline.
PULL_EXPIRES_S: Final = 1.0


class JetStreamJob:
    """One delivery of a message of a work queue."""

    def __init__(self, link: NatsLink, msg: InboundMessage, slot: Slot) -> None:
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
        return deliveries(self._msg.reply)

    @property
    def trace(self) -> str | None:
        return parse_trace(self._msg.headers.get(TRACE_HEADER))

    @property
    def stored_ms(self) -> int:
        return int(self._msg.reply.split(".")[7]) // 1_000_000

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


def deliveries(reply: str) -> int:
    """How often a message was delivered, by the reply subject of a delivery."""
    return int(reply.split(".")[4])
