"""Request and reply over core NATS."""

import asyncio

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import (
    NatsLink,
    NoAnswer,
)
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.subjects import BY_HEADER


class NatsRequests:
    """Request and reply over core NATS."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def request(
        self, subject: str, body: bytes, *, timeout_s: float, by: PrincipalName | None = None
    ) -> bytes:
        headers = None if by is None else {BY_HEADER: by}
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._link.request(
                    subject, body, timeout_s=timeout_s, headers=headers
                )
                return answer.data
        except (NoAnswer, TimeoutError) as error:
            raise LogUnavailable(f"{subject} did not answer in {timeout_s} s") from error
