"""Request and reply over NATS, carried by FastStream, documented as AsyncAPI."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from faststream.nats import NatsBroker, NatsMessage
from faststream.specification import AsyncAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

REQUESTS_MAX: Final = 512

Reply: TypeAlias = Callable[[str, bytes], Awaitable[bytes]]
"""Answers a request: the subject it came on, its body."""


def broker(url: str) -> NatsBroker:
    """A broker that reconnects for ever. It connects when it is started."""
    return NatsBroker(
        url,
        apply_types=False,
        logger=None,
        max_reconnect_attempts=-1,
        reconnect_time_wait=1,
        ping_interval=10,
    )


def respond(
    carrier: NatsBroker,
    subject: str,
    *,
    queue: str,
    title: str,
    command: type[BaseModel],
    reply: Reply,
) -> None:
    """Serve one verb. Instances of one queue share its requests."""

    async def on_request(message: NatsMessage) -> bytes:
        return await reply(message.raw_message.subject, message.body)

    # The document shows the command; the decoder hands over the raw message, because a malformed
    # one must be answered too.
    on_request.__annotations__["message"] = command
    subscribe = carrier.subscriber(
        subject, queue, max_workers=REQUESTS_MAX, title=title, decoder=_raw
    )
    subscribe(on_request)


def asyncapi(carrier: NatsBroker, title: str) -> Route:
    """Serves the AsyncAPI document of what a broker carries."""
    specification = AsyncAPI(carrier, title=title, version="1")
    document = specification.to_specification().to_json()

    async def show(_request: Request) -> Response:
        return Response(document, media_type="application/json")

    return Route("/asyncapi.json", show)


async def _raw(message: NatsMessage) -> NatsMessage:
    return message
