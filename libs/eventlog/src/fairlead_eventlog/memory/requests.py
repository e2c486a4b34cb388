"""Requests in memory; functions answer them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.identity.request_context import add_request_headers

RequestAnswer: TypeAlias = Callable[[bytes], Awaitable[bytes]]


class MemoryRequests:
    """Requests that functions answer."""

    def __init__(self) -> None:
        self.answerers: dict[str, RequestAnswer] = {}
        self.callers: list[PrincipalName | None] = []
        self.headers: list[Mapping[str, str]] = []

    async def request(
        self,
        subject: str,
        body: bytes,
        *,
        timeout_s: float,
        by: PrincipalName | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        self.callers.append(by)
        sent = dict(headers or {})
        add_request_headers(sent)
        self.headers.append(sent)
        if subject not in self.answerers:
            raise NoResponders(subject)
        try:
            async with asyncio.timeout(timeout_s):
                return await self.answerers[subject](body)
        except TimeoutError as error:
            raise LogUnavailable(f"{subject} did not answer in {timeout_s} s") from error
