"""Opens a link to NATS and closes it. The adapters of the ports are not loaded for that."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairlead_eventlog.jetstream.client import open_client
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_schema.identity.nats_address import NatsAddress

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_link(
    address: NatsAddress, *, name: str, timeout_s: float = 5.0
) -> AsyncIterator[NatsLink]:
    """A connection that reconnects for ever.

    Raises LogUnavailable if the first connect fails, ServerUnfit and CredentialsUnusable.
    """
    links: list[NatsLink] = []
    closing = False

    async def on_reconnect() -> None:
        log.info("reconnected to NATS: consumers and tails start over")
        for link in links:
            link.notify_reconnected()
            if (unfit := link.find_unfit()) is not None:
                log.error(
                    "NATS came back and lacks something: this process is not ready until it is mended",
                    extra={"reason": str(unfit)},
                )

    async def on_disconnect() -> None:
        for link in links:
            link.notify_disconnected()
        if not closing:
            log.warning("disconnected from NATS: reconnecting until it works")

    client = await open_client(
        address, name=name, on_reconnect=on_reconnect, on_disconnect=on_disconnect
    )
    link = NatsLink(client, timeout_s)
    links.append(link)
    try:
        if (unfit := link.find_unfit()) is not None:
            raise unfit
        await link.open()
        yield link
    finally:
        closing = True
        await link.close()
