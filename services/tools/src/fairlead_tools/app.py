"""The tools service as a process: its calls, its observations and its catalogue over NATS."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.applications import Starlette

from fairlead_eventlog.jetstream import connect
from fairlead_schema import subjects
from fairlead_schema.context import ObserveContext
from fairlead_schema.errors import InvalidRequest
from fairlead_schema.model import Model
from fairlead_schema.permission import Rule
from fairlead_schema.tooling import ListTools, ToolCatalog
from fairlead_service import ids
from fairlead_service.health import Health
from fairlead_service.messages import Carrier
from fairlead_service.process import application
from fairlead_tools import probes, spool
from fairlead_tools.builtin import builtins
from fairlead_tools.execute import Execute
from fairlead_tools.observe import observe
from fairlead_tools.registry import Registry
from fairlead_tools.settings import Settings

Rules: TypeAlias = Callable[[str | None], tuple[Rule, ...]]
Command = TypeVar("Command", bound=Model)


class Tools:
    """One worker of a pool."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._worker_id = ids.worker_id()
        self.registry = registry(settings)
        self.carrier = Carrier(settings.nats_url)
        self.carrier.respond(
            subjects.observe(settings.pool),
            queue="tools",
            title="observe",
            command=ObserveContext,
            reply=lambda _subject, body: answer(body),
        )
        self.carrier.respond(
            subjects.tooling(settings.pool),
            queue="tools",
            title="tooling",
            command=ListTools,
            reply=lambda _subject, body: list_tools(self.registry, body, settings.config.rules),
        )

    @asynccontextmanager
    async def work(self, health: Health) -> AsyncIterator[None]:
        """Connect, answer and run calls until the process ends; then finish or hand over."""
        async with connect(self._settings.nats_url, name="fairlead-tools") as eventlog:
            health.depend("nats", eventlog.complaint)
            await eventlog.liveness.answer(self._worker_id)
            await self.carrier.start()
            config = self._settings.config
            spool.sweep(config.tools.spool_dir)
            execute = Execute(self._worker_id, eventlog, self.registry, config.tools, config.rules)
            standing = asyncio.create_task(execute.stand())
            beating = asyncio.create_task(execute.beat())
            try:
                yield
            finally:
                await _cancelled(standing)
                await execute.leave()
                await _cancelled(beating)
                await self.carrier.stop()


def registry(settings: Settings) -> Registry:
    """The tools that the configuration asks for."""
    made = Registry()
    for tool in builtins(settings.config):
        made.register(tool)
    if settings.config.tools.probes:
        probes.register(made, settings.config.tools.probe_file)
    return made


async def answer(body: bytes) -> bytes:
    """One coherent sample of a location's context sources, or a typed error."""
    return await _answered(ObserveContext, body, observe)


async def list_tools(tools: Registry, body: bytes, rules: Rules = lambda _agent: ()) -> bytes:
    """What an agent may call at a location now, or a typed error."""

    async def listed(asked: ListTools) -> ToolCatalog:
        return tools.catalog(rules(asked.agent))

    return await _answered(ListTools, body, listed)


async def _answered(
    kind: type[Command], body: bytes, reply: Callable[[Command], Awaitable[Model]]
) -> bytes:
    try:
        asked = kind.model_validate_json(body)
    except ValidationError as error:
        reason = InvalidRequest(error.errors()[0]["msg"], kind="Body")
        return to_json({"error": reason.body.wire()})
    return to_json({"data": (await reply(asked)).wire()})


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def build(settings: Settings) -> Starlette:
    """The ASGI application of the tools service. Nothing connects until it starts."""
    health = Health()
    tools = Tools(settings)
    document = tools.carrier.asyncapi("Fairlead tools")
    return application(lambda: tools.work(health), health, [document])
