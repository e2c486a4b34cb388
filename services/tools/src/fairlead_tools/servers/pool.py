"""The configured tool servers: one connection for all tenants, or one with a tenant's credentials."""

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from fairlead_schema.ids import TenantId
from fairlead_service.config.configuration import Config
from fairlead_service.config.tool_servers import Credentials, ToolServerConfig
from fairlead_service.supervise import cancel_and_wait
from fairlead_tools.attachments.content import NotTaken, RawContent
from fairlead_tools.registry.registry import Registration, Registry
from fairlead_tools.registry.tool import Tool
from fairlead_tools.servers.limits import ServerTimings

if TYPE_CHECKING:
    from fairlead_tools.servers.connection import ServerConnection

log = logging.getLogger(__name__)

OWNER: Final = "mcp"
RANK: Final = 10
TIMINGS: Final = ServerTimings()


@dataclass(frozen=True, slots=True)
class ServerBinding:
    """One connection: a server with credentials, for one tenant or for all but a few."""

    name: str
    server: ToolServerConfig
    credentials: Credentials
    tenant: TenantId | None = None
    except_tenants: frozenset[TenantId] = frozenset()


def server_bindings(config: Config) -> tuple[ServerBinding, ...]:
    """Every connection that the configuration asks for, in its order."""
    bindings: list[ServerBinding] = []
    for name, server in config.mcp.items():
        if not server.enabled:
            continue
        own = {
            tenant: settings.mcp[name]
            for tenant, settings in config.tenant.items()
            if name in settings.mcp
        }
        bindings.append(ServerBinding(name, server, server, None, frozenset(own)))
        bindings += [
            ServerBinding(name, server, override.merge_over(server), tenant)
            for tenant, override in own.items()
        ]
    return tuple(bindings)


class ToolServers:
    """Keeps the tools in the registry equal to what the servers list."""

    def __init__(
        self, config: Config, registry: Registry, timings: ServerTimings = TIMINGS
    ) -> None:
        self._timings = timings
        self._bindings = server_bindings(config)
        self._registry = registry
        self._tools: dict[int, tuple[Tool, ...]] = {}
        self._connections: list[ServerConnection] = []

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[None]:
        """Keep every server connected while the block runs."""
        if not self._bindings:
            yield
            return
        # The MCP library loads slowly: only a configuration with servers waits for it.
        module = await asyncio.to_thread(
            importlib.import_module, "fairlead_tools.servers.connection"
        )
        connections: list[ServerConnection] = [
            module.ServerConnection(
                binding.name,
                binding.server,
                binding.credentials,
                lambda tools, index=index: self._on_tools(index, tools),
                self._timings,
            )
            for index, binding in enumerate(self._bindings)
        ]
        self._connections = connections
        tasks = [asyncio.create_task(connection.run()) for connection in connections]
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timings.first_lists_s):
                    await asyncio.gather(*(connection.listed.wait() for connection in connections))
            yield
        finally:
            await cancel_and_wait(*tasks)
            self._registry.replace_owned(OWNER, ())

    async def read_resource(self, tenant: TenantId, uri: str) -> RawContent:
        """A resource that `mcp://<server>/<its URI>` names. Raises NotTaken or CallFailed."""
        server, _, resource = uri.partition(":")[2].lstrip("/").partition("/")
        resource = resource if ":" in resource else unquote(resource)
        for binding, connection in zip(self._bindings, self._connections, strict=False):
            is_own = binding.tenant == tenant
            is_shared = binding.tenant is None and tenant not in binding.except_tenants
            if binding.name == server and (is_own or is_shared):
                mime, data = await connection.read(resource)
                return RawContent(data, resource.rpartition("/")[2], mime)
        raise NotTaken(f"There is no tool server {server[:80]!r}.")

    def _on_tools(self, index: int, tools: tuple[Tool, ...]) -> None:
        self._tools[index] = tools
        self._registry.replace_owned(OWNER, self._registrations())

    def _registrations(self) -> list[Registration]:
        """The registrations in configured order, whichever server answered first."""
        registrations: list[Registration] = []
        for index, binding in enumerate(self._bindings):
            for tool in self._tools.get(index, ()):
                if self._is_name_taken(tool.name, binding, registrations):
                    log.warning(
                        "tool of a server left out: its name is taken",
                        extra={"server": binding.name, "tool": tool.name},
                    )
                    continue
                registrations.append(
                    Registration(tool, binding.tenant, None, OWNER, RANK, binding.except_tenants)
                )
        return registrations

    def _is_name_taken(
        self, name: str, binding: ServerBinding, registrations: list[Registration]
    ) -> bool:
        """A tool of a server never hides a built-in tool or a tool of an earlier server."""
        if self._registry.is_builtin(name):
            return True
        return any(
            other.tool.name == name
            and (None in {other.tenant, binding.tenant} or other.tenant == binding.tenant)
            and not (other.tenant is None and binding.tenant in other.except_tenants)
            for other in registrations
        )
