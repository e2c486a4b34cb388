"""Request and reply over NATS, carried by FastStream, documented as AsyncAPI."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from faststream.nats import NatsBroker, NatsMessage
from faststream.specification import AsyncAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

log = logging.getLogger(__name__)

REQUESTS_MAX: Final = 512

Reply: TypeAlias = Callable[[str, bytes], Awaitable[bytes]]
"""Answers a request: the subject it came on, its body."""


class RpcServer:
    """Serves verbs on one connection that reconnects for ever; it connects when started.

    Requests are answered side by side, each in a task of its own: the broker's own worker pool
    costs as much as an admission does.
    """

    def __init__(self, url: str) -> None:
        self.broker = NatsBroker(
            url.split(","),
            apply_types=False,
            logger=None,
            max_reconnect_attempts=-1,
            reconnect_time_wait=1,
            ping_interval=10,
        )
        self._slots = asyncio.Semaphore(REQUESTS_MAX)
        self._answering: set[asyncio.Task[None]] = set()

    def respond(
        self, subject: str, *, queue: str, title: str, command: type[BaseModel], reply: Reply
    ) -> None:
        """Serve one verb. Instances of one queue share its requests."""

        async def on_request(message: NatsMessage) -> None:
            await self._slots.acquire()
            task = asyncio.create_task(self._answer(message, reply))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

        # The document shows the command; the decoder hands over the raw message, because a
        # malformed one must be answered too.
        on_request.__annotations__["message"] = command
        subscribe = self.broker.subscriber(subject, queue, title=title, decoder=_raw, no_reply=True)
        subscribe(on_request)

    def asyncapi(self, title: str) -> Route:
        """Serves the AsyncAPI document of what is carried."""
        specification = AsyncAPI(self.broker, title=title, version="1")
        document = specification.to_specification().to_json()

        async def show(_request: Request) -> Response:
            return Response(document, media_type="application/json")

        return Route("/asyncapi.json", show)

    async def start(self) -> None:
        """Connect and serve."""
        await self.broker.start()

    async def stop(self) -> None:
        """Take nothing new, answer what was taken, then disconnect."""
        for subscriber in self.broker.subscribers:
            await subscriber.stop()
        await asyncio.gather(*self._answering, return_exceptions=True)
        await self.broker.stop()

    async def _answer(self, message: NatsMessage, reply: Reply) -> None:
        try:
            answer = await reply(message.raw_message.subject, message.body)
            if message.raw_message.reply:
                await message.raw_message.respond(answer)
        except Exception:
            log.exception("request failed", extra={"subject": message.raw_message.subject})
        finally:
            self._slots.release()


async def _raw(message: NatsMessage) -> NatsMessage:
    return message
