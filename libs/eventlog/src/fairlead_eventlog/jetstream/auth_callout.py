"""Answers the questions of NATS servers about connections, in a queue with other callouts."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from nats.aio.msg import Msg

from fairlead_eventlog.grants.callout import (
    CALLOUT,
    REQUESTS,
    BadCalloutRequest,
    CalloutRequest,
    parse_request,
)
from fairlead_eventlog.jetstream.client import open_client
from fairlead_schema.identity.nats_address import NatsAddress

log = logging.getLogger(__name__)

Decide: TypeAlias = Callable[[CalloutRequest], Awaitable[bytes]]
"""The signed answer to one question."""
_CLIENT_NAME: Final = "fairlead-nats-callout"


@asynccontextmanager
async def serve_callout(address: NatsAddress, decide: Decide) -> AsyncIterator[None]:
    """Answer questions for the length of a block. Raises LogUnavailable and CredentialsUnusable."""

    async def answer(msg: Msg) -> None:
        try:
            await msg.respond(await decide(parse_request(msg.data)))
        except BadCalloutRequest as error:
            log.error(  # noqa: TRY400 - the reason says enough
                "authorization request of a NATS server cannot be read: the client is refused",
                extra={"reason": str(error)},
            )
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("authorization request of a NATS server failed: the client is refused")

    client = await open_client(address, name=_CLIENT_NAME)
    try:
        await client.subscribe(REQUESTS, CALLOUT, cb=answer)
        await client.flush()
        yield
    finally:
        await client.close()
