"""Live fragments over core NATS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from pydantic import ValidationError

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_schema import subjects
from fairlead_schema.delta import DELTA, Delta
from fairlead_schema.subjects import Address

DELTA_BUFFER: Final = 1024


class NatsDeltas:
    """Live fragments over core NATS."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def send(self, at: Address, delta: Delta) -> None:
        payload = delta.model_dump_json(by_alias=True, exclude_none=True).encode()
        if len(payload) > self._link.payload_bytes_max:
            return  # Too large for a message. The event that ends the block holds the whole text.
        # A late fragment is worth nothing, so it is dropped while the server is away.
        with suppress(LogUnavailable):
            await self._link.send(subjects.delta(at), payload)

    async def listen(self, at: Address) -> AsyncIterator[Delta]:
        received: asyncio.Queue[InboundMessage] = asyncio.Queue(DELTA_BUFFER)

        def receive(msg: InboundMessage) -> None:
            with suppress(asyncio.QueueFull):
                received.put_nowait(msg)

        subscription = await self._link.listen(subjects.delta(at), receive)
        try:
            while True:
                msg = await received.get()
                with suppress(ValidationError):
                    yield DELTA.validate_json(msg.data)
        finally:
            with suppress(Exception):
                await subscription.unsubscribe()
