"""Request and reply over core NATS, or within this process where it has a responder."""

import asyncio
import json

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import (
    NatsLink,
    NoAnswer,
)
from fairlead_eventlog.jetstream.local_requests import LocalRequests
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.subjects import BY_HEADER, RESTRICTIONS_HEADER


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
        restrictions: Restrictions | None = None,
    ) -> bytes:
        headers = None if by is None else {BY_HEADER: by}
        if headers is not None and restrictions is not None:
            headers[RESTRICTIONS_HEADER] = json.dumps(restrictions.wire())
        try:
            # NATS refuses a body that is too large, so that such a request goes there.
            if self._local is not None and len(body) <= self._link.payload_bytes_max:
                responder = self._local.find(subject)
                if responder is not None:
                    async with asyncio.timeout(timeout_s):
                        return await responder.answer(subject, headers, body)
            answer = await self._link.request(subject, body, timeout_s=timeout_s, headers=headers)
        except (NoAnswer, TimeoutError) as error:
            raise LogUnavailable(f"{subject} did not answer in {timeout_s} s") from error
        return answer.data
