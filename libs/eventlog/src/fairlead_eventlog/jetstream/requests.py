"""Request and reply over core NATS."""

import asyncio

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import (
    NatsLink,
    NoAnswer,
)


class NatsRequests:
    """Request and reply over core NATS."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def request(self, subject: str, body: bytes, *, timeout_s: float) -> bytes:
        try:
            async with asyncio.timeout(timeout_s):
                return (await self._link.request(subject, body, timeout_s=timeout_s)).data
        except (NoAnswer, TimeoutError) as error:
            raise LogUnavailable(f"{subject} did not answer in {timeout_s} s") from error
