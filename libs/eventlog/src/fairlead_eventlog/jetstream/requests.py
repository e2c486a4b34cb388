"""Request and reply over core NATS."""

import json

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import (
    NatsLink,
    NoAnswer,
)
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.subjects import BY_HEADER, RESTRICTIONS_HEADER


class NatsRequests:
    """Request and reply over core NATS."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

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
            answer = await self._link.request(subject, body, timeout_s=timeout_s, headers=headers)
        except NoAnswer as error:
            raise LogUnavailable(f"{subject} did not answer in {timeout_s} s") from error
        return answer.data
