"""The tools service as a process: its calls, its observations and its catalogue over NATS."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from starlette.applications import Starlette

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.client import open_client
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.local_requests import LocalRequests
from fairlead_schema import subjects
from fairlead_schema.attachments.request import TakeAttachments, TakenAttachments
from fairlead_schema.commands.location_catalog import ListSkills, LookUpNames, NamesFound, Skills
from fairlead_schema.commands.location_files import (
    FileEntries,
    FilePart,
    FindFiles,
    ListFiles,
    ReadFile,
)
from fairlead_schema.permission import PermissionRule
from fairlead_schema.tools.request import ListTools, ToolCatalog, ToolInfo
from fairlead_service import ids
from fairlead_service.config.configuration import Config
from fairlead_service.health import Health
from fairlead_service.process import application
from fairlead_service.rpc.server import ANY_TENANT, RpcServer, TenantParam
from fairlead_service.supervise import cancel_and_wait, report_defects, supervise
from fairlead_tools import probes
from fairlead_tools.attachments.taker import AttachmentTaker
from fairlead_tools.builtin import builtins, skill, task
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.calls.subagents import Subagents
from fairlead_tools.calls.worker import ToolWorker
from fairlead_tools.context.location_views import LocationViews
from fairlead_tools.context.look_up import look_up_names
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.registered import RegisteredSources
from fairlead_tools.context.source_verbs import SourceVerbs
from fairlead_tools.context.sources.files import expand_home
from fairlead_tools.context.web_pages import fallback_directory
from fairlead_tools.file_snapshots.service import FileSnapshots
from fairlead_tools.file_snapshots.transfer_service import FileTransfers
from fairlead_tools.files.private import PRIVATE
from fairlead_tools.location_files.browser import LocationFiles
from fairlead_tools.private_directory import PrivateDirectory, open_private_directory
from fairlead_tools.registry.application import verbs
from fairlead_tools.registry.application.calls import tool_from_record
from fairlead_tools.registry.application.records import ToolRecords
from fairlead_tools.registry.application.verbs import ToolVerbs
from fairlead_tools.registry.registry import Registry, Scope
from fairlead_tools.registry.transforms import TransformVerbs
from fairlead_tools.roots import check_roots
from fairlead_tools.servers.pool import ToolServers
from fairlead_tools.session_files import keep_clean
from fairlead_tools.settings import ToolsSettings
from fairlead_tools.skills.skill_list import list_skills

CatalogRules: TypeAlias = Callable[[str | None], tuple[PermissionRule, ...]]


class ToolsService:
    """One worker of a pool."""

    def __init__(self, settings: ToolsSettings, local: LocalRequests | None = None) -> None:
        self._settings = settings
        self._local = local
        self._worker_id = ids.worker_id()
        self._taker: AttachmentTaker | None = None
        self.observer = Observer(settings.config)
        self.private = hide_private_directories(settings.config)
        self.registry = build_registry(settings, self.private)
        self._servers = ToolServers(settings.config, self.registry)
        self.registry.register(skill.tool(settings.config, self.observer.catalog))
        self.files = LocationFiles(settings.config)
        self.server = RpcServer(
            partial(open_client, settings.nats),
            name="tools",
            refusals=verbs.REFUSALS,
            local=local,
        )
        pool = settings.pool
        views = LocationViews(self.observer, self._offered_tools)
        self.server.serve_thin("observe", subjects.observe(pool), views.look)
        self.file_snapshots = FileSnapshots(settings.config, self.private.snapshots)
        transfers = FileTransfers(self.file_snapshots)
        for act, answer in {**self.file_snapshots.acts, **transfers.acts}.items():
            self.server.serve_thin(f"files.{act}", subjects.file_snapshot(pool, act), answer)
        self.server.serve("tooling", subjects.tool_catalog(pool), self._list_tools)
        self.server.serve("lookup", subjects.look_up(pool), self._look_up)
        self.server.serve_thin("attach", subjects.attach(pool), self._take_attachments)
        for verb, handler in (
            ("skill.list", self._list_skills),
            ("file.list", self._list_files),
            ("file.read", self._read_file),
            ("file.find", self._find_files),
        ):
            self.server.serve(f"browse.{verb}", subjects.browse(pool, ANY_TENANT, verb), handler)
        self.transforms = TransformVerbs()
        if settings.serves_tenants:
            SourceVerbs(self.observer).serve(self.server)
            verbs.serve_tool_verbs(self.server)
            self.transforms.serve(self.server)

    @asynccontextmanager
    async def work(self, health: Health) -> AsyncIterator[None]:
        """Connect, answer and run calls until the process ends. Then finish calls or hand them over."""
        async with (
            connect(
                self._settings.nats,
                name=f"fairlead-{self._settings.config.pools.identity(self._settings.pool)}",
                append_patience_s=self._settings.config.nats.patience_s,
                local=self._local,
            ) as eventlog,
            self._servers.connect(),
        ):
            health.depend("nats", eventlog.complaint)
            await eventlog.liveness.start_answering(self._worker_id)
            config = self._settings.config
            self._taker = AttachmentTaker(config, eventlog, self._servers.read_resource)
            await self._connect_parts(eventlog)
            worker = ToolWorker(
                self._worker_id,
                eventlog,
                self.registry,
                config.tools,
                CallPolicy(config.rules, config.roots, config.quota_policy, config.agent_model),
            )
            records = ToolRecords(
                eventlog.tool_registrations, self.registry, partial(tool_from_record, eventlog)
            )
            self.registry.refresh_with(records.refresh)
            await eventlog.tool_registrations.watch(records.forget)
            self.server.provide(
                verbs.TOOL_VERBS,
                ToolVerbs(records, self.registry, worker.lifecycle, eventlog.client_consumers),
            )
            self.file_snapshots.read_session = worker.lifecycle.read
            self._offer_subagents(worker.lifecycle.subagents)
            await self.server.start()
            worker_task = asyncio.create_task(worker.run())
            report = report_defects(LogError)
            heartbeat_task = asyncio.create_task(
                supervise("heartbeat of tool requests", worker.heartbeat, report=report)
            )
            cleaning_task = asyncio.create_task(
                supervise(
                    "removal of old session files",
                    partial(keep_clean, self.private, eventlog.log, config.tools),
                    report=report,
                )
            )
            try:
                yield
            finally:
                await cancel_and_wait(worker_task)
                await worker.shutdown()
                await cancel_and_wait(heartbeat_task, cleaning_task)
                await self.server.stop()
                await self.file_snapshots.close()
                await self.observer.close()

    async def _connect_parts(self, eventlog: EventLog) -> None:
        """Give the log to everything that answers questions about locations."""
        timeout_s = self._settings.config.context.timeout_s
        self.observer.registered_sources = RegisteredSources(eventlog, timeout_s)
        await self.observer.registered_sources.watch()
        self.transforms.connect(eventlog)
        self.files.approvals = eventlog.approvals

    def _offer_subagents(self, subagents: Subagents) -> None:
        """Offer the tool that gives work to sub-agents, if any agent may be one."""
        config = self._settings.config
        agents = {
            name: agent.description or name
            for name, agent in config.agents.items()
            if agent.mode != "primary" and not agent.hidden
        }
        if config.tools.builtin and agents:
            self.registry.register(task.tool(subagents, agents))

    async def _take_attachments(self, command: TakeAttachments) -> TakenAttachments:
        assert self._taker is not None, "the server answers only while the log is connected"
        return await self._taker.take(command)

    async def _list_tools(self, command: ListTools) -> ToolCatalog:
        return await list_tools(self.registry, command, self._settings.config.rules)

    async def _offered_tools(self, command: ListTools) -> tuple[ToolInfo, ...]:
        return (await self._list_tools(command)).tools

    async def _look_up(self, command: LookUpNames) -> NamesFound:
        return await look_up_names(self._settings.config, self.observer.catalog, command)

    async def _list_skills(self, tenant: TenantParam, command: ListSkills) -> Skills:
        return await list_skills(self._settings.config, self.observer.catalog, tenant, command)

    async def _list_files(self, tenant: TenantParam, command: ListFiles) -> FileEntries:
        return await self.files.list(tenant, command)

    async def _read_file(self, tenant: TenantParam, command: ReadFile) -> FilePart:
        return await self.files.read(tenant, command)

    async def _find_files(self, tenant: TenantParam, command: FindFiles) -> FileEntries:
        return await self.files.find(tenant, command)


def hide_private_directories(config: Config) -> PrivateDirectory:
    """Make the private directory, and keep every tool out of it. Raises PrivateDirectoryUnsafe.

    Pages become instructions for models, so no tool may touch their cache. Tools may read downloaded
    skills, and not change them.
    """
    private = open_private_directory(config.tools.spool_dir)
    cache = expand_home(config.context.cache)
    PRIVATE.hide(private.root, *map(Path, config.tools.private_directories))
    for downloads in (cache, fallback_directory()):
        PRIVATE.forbid_changes(downloads)
        PRIVATE.hide(downloads / "pages")
    return private


def build_registry(settings: ToolsSettings, private: PrivateDirectory | None = None) -> Registry:
    """A registry of the built-in tools that the configuration enables."""
    tools = Registry()
    for tool in builtins(settings.config, private):
        tools.register(tool)
    if settings.config.tools.probes:
        probes.register(tools, settings.config.tools.probe_file)
    return tools


async def list_tools(
    tools: Registry, command: ListTools, rules: CatalogRules = lambda _agent: ()
) -> ToolCatalog:
    """The tools that an agent may call at a location now."""
    scope = Scope(command.tenant, command.location.directory)
    await tools.refresh(scope)
    return tools.catalog(scope, rules(command.agent))


def build(settings: ToolsSettings, local: LocalRequests | None = None) -> Starlette:
    """The ASGI application of the tools service. Nothing connects until it starts.

    Raises ConfigError if this machine lacks what the configuration names.
    """
    check_roots(settings.config, "configuration")
    health = Health()
    tools = ToolsService(settings, local)
    document = tools.server.asyncapi_route("Fairlead tools")
    return application("tools", lambda: tools.work(health), health, [document])
