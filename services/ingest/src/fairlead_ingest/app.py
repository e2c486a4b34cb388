"""Ingest as a process: FastStream carries the verbs, the service shell carries the rest."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fairlead_eventlog.jetstream import connect
from fairlead_schema import subjects
from fairlead_schema.api import AdmitPrompt, CreateSession
from fairlead_service.health import Health
from fairlead_service.process import application
from faststream.nats import NatsBroker, NatsMessage
from faststream.specification import AsyncAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairlead_ingest.answers import Command, Verb, answer
from fairlead_ingest.create import create
from fairlead_ingest.desk import Desk
from fairlead_ingest.intake import take_in
from fairlead_ingest.prompt import prompt
from fairlead_ingest.settings import Settings

QUEUE = "ingest"
REQUESTS_MAX = 512


class Ingest:
    """The verbs of ingest on one broker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._desk: Desk | None = None
        self.broker = NatsBroker(
            settings.nats_url,
            apply_types=False,
            logger=None,
            max_reconnect_attempts=-1,
            reconnect_time_wait=1,
            ping_interval=10,
        )
        self._serve("session.create", CreateSession, create)
        self._serve("session.prompt", AdmitPrompt, prompt)

    @property
    def desk(self) -> Desk:
        assert self._desk is not None, "verbs are served while the desk is open"
        return self._desk

    @asynccontextmanager
    async def work(self, health: Health) -> AsyncIterator[None]:
        """Connect, serve, and drain on the way out: what was accepted is answered and woken."""
        async with connect(
            self._settings.nats_url,
            name="fairlead-ingest",
            timeout_s=self._settings.request_timeout_s,
        ) as eventlog:
            health.depend("nats", eventlog.complaint)
            self._desk = Desk(eventlog, self._settings)
            await self.broker.start()
            intake = asyncio.create_task(take_in(self._desk))
            try:
                yield
            finally:
                intake.cancel()
                with suppress(asyncio.CancelledError):
                    await intake
                await self.broker.stop()
                await self._desk.waker.settle()

    def _serve(self, verb: str, command: type[Command], perform: Verb[Command]) -> None:
        async def on_request(message: NatsMessage) -> bytes:
            return await answer(self.desk, _tenant(message), message.body, command, perform)

        # The document shows the command; the decoder hands over the raw message, because a
        # malformed one must be answered too.
        on_request.__annotations__["message"] = command
        on_request.__doc__ = perform.__doc__
        subscribe = self.broker.subscriber(
            subjects.api("*", verb), QUEUE, max_workers=REQUESTS_MAX, title=verb, decoder=_raw
        )
        subscribe(on_request)


def build(settings: Settings) -> Starlette:
    """The ASGI application of ingest. Nothing connects until it starts."""
    health = Health()
    ingest = Ingest(settings)
    specification = AsyncAPI(ingest.broker, title="Fairlead ingest", version="1")
    document = specification.to_specification().to_json()

    async def asyncapi(_request: Request) -> Response:
        return Response(document, media_type="application/json")

    return application(lambda: ingest.work(health), health, [Route("/asyncapi.json", asyncapi)])


def _tenant(message: NatsMessage) -> str:
    return message.raw_message.subject.split(".")[2]


async def _raw(message: NatsMessage) -> NatsMessage:
    return message
