"""The tools service as a process: observations over NATS, the service shell."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.applications import Starlette

from fairlead_eventlog.jetstream import connect
from fairlead_schema import subjects
from fairlead_schema.context import ObserveContext
from fairlead_schema.errors import InvalidRequest
from fairlead_service import ids
from fairlead_service.health import Health
from fairlead_service.messages import Carrier
from fairlead_service.process import application
from fairlead_tools.observe import observe
from fairlead_tools.settings import Settings


class Tools:
    """One worker of a pool."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._worker_id = ids.worker_id()
        self.carrier = Carrier(settings.nats_url)
        self.carrier.respond(
            subjects.observe(settings.pool),
            queue="tools",
            title="observe",
            command=ObserveContext,
            reply=lambda _subject, body: answer(body),
        )

    @asynccontextmanager
    async def work(self, health: Health) -> AsyncIterator[None]:
        """Connect, answer pings and observations until the process ends."""
        async with connect(self._settings.nats_url, name="fairlead-tools") as eventlog:
            health.depend("nats", eventlog.complaint)
            await eventlog.liveness.answer(self._worker_id)
            await self.carrier.start()
            try:
                yield
            finally:
                await self.carrier.stop()


async def answer(body: bytes) -> bytes:
    """One coherent sample of a location's context sources, or a typed error."""
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
    document = tools.carrier.asyncapi("Fairlead tools")
    return application(lambda: tools.work(health), health, [document])
