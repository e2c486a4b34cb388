"""The tools service as a process: its calls, its observations and its catalogue over NATS."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeAlias, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.applications import Starlette

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.connect import connect
from fairlead_schema import subjects
from fairlead_schema.context import ObserveContext, RemoveSource, SourceRegistration
from fairlead_schema.errors import InvalidRequest, Refused, ServiceUnavailable
from fairlead_schema.model import Model
from fairlead_schema.permission import PermissionRule
from fairlead_schema.tools.request import ListTools, ToolCatalog
from fairlead_service import ids
from fairlead_service.health import Health
from fairlead_service.process import application
from fairlead_service.rpc import RpcServer
from fairlead_tools import probes, spool
from fairlead_tools.builtin import builtins, skill, task
from fairlead_tools.calls.lifecycle import Life
from fairlead_tools.calls.subagents import Children
from fairlead_tools.calls.worker import Execute
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.registered import Plugins
from fairlead_tools.registry.application import verbs
from fairlead_tools.registry.application.calls import make
from fairlead_tools.registry.application.records import Records
from fairlead_tools.registry.application.verbs import Desk
from fairlead_tools.registry.registry import Registry, Scope
from fairlead_tools.servers.pool import Servers
from fairlead_tools.settings import ToolsSettings

Rules: TypeAlias = Callable[[str | None], tuple[PermissionRule, ...]]
Command = TypeVar("Command", bound=Model)
Reply: TypeAlias = Callable[[bytes], Awaitable[bytes]]


class Tools:
    """One worker of a pool."""

    def __init__(self, settings: ToolsSettings) -> None:
        self._settings = settings
        self._worker_id = ids.worker_id()
        self.observer = Observer(settings.config)
        self.registry = registry(settings)
        self.registry.register(skill.tool(settings.config, self.observer.catalog))
        self.carrier = RpcServer(settings.nats_url)
        self._respond("observe", subjects.observe(settings.pool), ObserveContext, self._observe)
        self._respond("tooling", subjects.tool_catalog(settings.pool), ListTools, self._list)
        for verb, command, reply in (
            ("register", SourceRegistration, self._register),
            ("remove", RemoveSource, self._remove),
        ):
            self._respond(f"source.{verb}", subjects.source(settings.pool, verb), command, reply)
        self._desk: Desk | None = None
        verbs.serve(self.carrier, self.desk)

    def desk(self) -> Desk:
        """What the verbs work on. They are served only while the worker is connected."""
        assert self._desk is not None, "verbs are served while the worker is connected"
        return self._desk

    @asynccontextmanager
    async def work(self, health: Health) -> AsyncIterator[None]:
        """Connect, answer and run calls until the process ends; then finish or hand over."""
        async with (
            connect(self._settings.nats_url, name="fairlead-tools") as eventlog,
            Servers(self._settings.config, self.registry).connected(),
        ):
            health.depend("nats", eventlog.complaint)
            await eventlog.liveness.answer_pings(self._worker_id)
            config = self._settings.config
            timeout_s = config.context.timeout_s
            self.observer.plugins = Plugins(eventlog, self._settings.pool, timeout_s)
            spool.sweep(config.tools.spool_dir)
            execute = Execute(self._worker_id, eventlog, self.registry, config.tools, config.rules)
            records = Records(eventlog.tool_registrations, self.registry, partial(make, eventlog))
            self.registry.learns_from(records.learn)
            self._desk = Desk(records, self.registry, execute.life)
            self._hire(eventlog, execute.life)
            await self.carrier.start()
            standing = asyncio.create_task(execute.stand())
            beating = asyncio.create_task(execute.beat())
            try:
                yield
            finally:
                await _cancelled(standing)
                await execute.leave()
                await _cancelled(beating)
                await self.carrier.stop()
                await self.observer.close()

    def _hire(self, eventlog: EventLog, life: Life) -> None:
        """Offer the tool that gives work to other sessions, where there are any agents for it."""
        config = self._settings.config
        agents = {
            name: agent.description or name
            for name, agent in config.agents.items()
            if agent.mode != "primary" and not agent.hidden
        }
        if config.tools.builtin and agents:
            children = Children(eventlog, life, depth_max=config.tools.depth_max)
            self.registry.register(task.tool(children, agents))
            life.abandon = children.abandon

    def _respond(self, title: str, subject: str, command: type[Model], reply: Reply) -> None:
        self.carrier.respond(
            subject,
            queue="tools",
            title=title,
            command=command,
            reply=lambda _subject, body: reply(body),
        )

    async def _observe(self, body: bytes) -> bytes:
        return await answer(self.observer, body)

    async def _list(self, body: bytes) -> bytes:
        return await list_tools(self.registry, body, self._settings.config.rules)

    async def _register(self, body: bytes) -> bytes:
        return await answered(SourceRegistration, body, self._plugins().register)

    async def _remove(self, body: bytes) -> bytes:
        return await answered(RemoveSource, body, self._plugins().remove)

    def _plugins(self) -> Plugins:
        assert self.observer.plugins is not None, "requests are answered once there is a log"
        return self.observer.plugins


def registry(settings: ToolsSettings) -> Registry:
    """The tools that the configuration asks for."""
    made = Registry()
    for tool in builtins(settings.config):
        made.register(tool)
    if settings.config.tools.probes:
        probes.register(made, settings.config.tools.probe_file)
    return made


async def answer(observer: Observer, body: bytes) -> bytes:
    """One coherent sample of a location's context sources, or a typed error."""
    return await answered(ObserveContext, body, observer.observe)


async def list_tools(tools: Registry, body: bytes, rules: Rules = lambda _agent: ()) -> bytes:
    """What an agent may call at a location now, or a typed error."""

    async def listed(asked: ListTools) -> ToolCatalog:
        scope = Scope(asked.tenant, asked.location.directory)
        await tools.learn(scope)
        return tools.catalog(scope, rules(asked.agent))

    return await answered(ListTools, body, listed)


async def answered(
    kind: type[Command], body: bytes, reply: Callable[[Command], Awaitable[Model]]
) -> bytes:
    """What a verb says to a body, or the typed error that it is refused with."""
    try:
        asked = kind.model_validate_json(body)
    except ValidationError as error:
        reason = InvalidRequest(error.errors()[0]["msg"], kind="Body")
        return to_json({"error": reason.body.wire()})
    try:
        return to_json({"data": (await reply(asked)).wire()})
    except Refused as refused:
        return to_json({"error": refused.body.wire()})
    except LogError as error:
        return to_json({"error": ServiceUnavailable(str(error), service="nats").body.wire()})


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def build(settings: ToolsSettings) -> Starlette:
    """The ASGI application of the tools service. Nothing connects until it starts."""
    health = Health()
    tools = Tools(settings)
    document = tools.carrier.asyncapi("Fairlead tools")
    return application(lambda: tools.work(health), health, [document])
