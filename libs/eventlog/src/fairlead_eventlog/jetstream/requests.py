"""Request and reply over core NATS, or within this process where it has a responder."""

import asyncio
from collections.abc import Mapping

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import (
    NatsLink,
    NoAnswer,
)
from fairlead_eventlog.jetstream.local_requests import LocalRequests
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.identity.request_context import add_request_headers
from fairlead_schema.subjects import BY_HEADER


class NatsRequests:
    """Request and reply over core NATS. A responder of this process answers without NATS."""

    def __init__(self, link: NatsLink, local: LocalRequests | None = None) -> None:
        self._link = link
        self._local = local

    async def request(
        self,
        subject: str,
        body: bytes,
        *,
        timeout_s: float,
        by: PrincipalName | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        sent = dict(headers or {})
        if by is not None:
            sent[BY_HEADER] = by
        add_request_headers(sent)
        try:
            # NATS refuses a body that is too large, so that such a request goes there.
            if self._local is not None and len(body) <= self._link.payload_bytes_max:
                responder = self._local.find(subject)
                if responder is not None:
                    async with asyncio.timeout(timeout_s):
                        return await responder.answer(subject, sent or None, body)
            answer = await self._link.request(
                subject, body, timeout_s=timeout_s, headers=sent or None
            )
        except (NoAnswer, TimeoutError) as error:
            raise LogUnavailable(f"{subject} did not answer in {timeout_s} s") from error
        return answer.data
