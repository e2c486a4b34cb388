"""The tools service as a process: FastStream carries observations, the shell carries the rest."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairlead_eventlog.jetstream import connect
from fairlead_schema import subjects
from fairlead_schema.context import ObserveContext
from fairlead_schema.errors import InvalidRequest
from fairlead_service import ids
from fairlead_service.health import Health
from fairlead_service.process import application
from faststream.nats import NatsBroker, NatsMessage
from faststream.specification import AsyncAPI
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairlead_tools.observe import observe
from fairlead_tools.settings import Settings

REQUESTS_MAX = 64


class Tools:
    """One worker of a pool."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._worker_id = ids.worker_id()
        self.broker = NatsBroker(
            settings.nats_url,
            apply_types=False,
            logger=None,
            max_reconnect_attempts=-1,
            reconnect_time_wait=1,
            ping_interval=10,
        )
        self._serve_observations()

    @asynccontextmanager
    async def work(self, health: Health) -> AsyncIterator[None]:
        """Connect, answer pings and observations until the process ends."""
        async with connect(self._settings.nats_url, name="fairlead-tools") as eventlog:
            health.depend("nats", eventlog.complaint)
            await eventlog.liveness.answer(self._worker_id)
            await self.broker.start()
            try:
                yield
            finally:
                await self.broker.stop()

    def _serve_observations(self) -> None:
        async def on_observe(message: NatsMessage) -> bytes:
            """One coherent sample of a location's context sources."""
            return await answer(message.body)

        # The document shows the command; the decoder hands over the raw message, because a
        # malformed one must be answered too.
        on_observe.__annotations__["message"] = ObserveContext
        subscribe = self.broker.subscriber(
            subjects.observe(self._settings.pool),
            "tools",
            max_workers=REQUESTS_MAX,
            title="observe",
            decoder=_raw,
        )
        subscribe(on_observe)


async def answer(body: bytes) -> bytes:
    """The sample, or a typed error."""
    try:
        asked = ObserveContext.model_validate_json(body)
    except ValidationError as error:
        reason = InvalidRequest(error.errors()[0]["msg"], kind="Body")
        return to_json({"error": reason.body.wire()})
    return to_json({"data": (await observe(asked)).wire()})


def build(settings: Settings) -> Starlette:
    """The ASGI application of the tools service. Nothing connects until it starts."""
    health = Health()
    tools = Tools(settings)
    specification = AsyncAPI(tools.broker, title="Fairlead tools", version="1")
    document = specification.to_specification().to_json()

    async def asyncapi(_request: Request) -> Response:
        return Response(document, media_type="application/json")

    return application(lambda: tools.work(health), health, [Route("/asyncapi.json", asyncapi)])


async def _raw(message: NatsMessage) -> NatsMessage:
    return message
