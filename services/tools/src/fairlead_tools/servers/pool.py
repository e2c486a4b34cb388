"""Every configured tool server, for everybody or with a tenant's own credentials."""

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fairlead_schema.ids import TenantId
from fairlead_service.config.configuration import Config
from fairlead_service.config.tool_servers import Credentials, ToolServerConfig
from fairlead_service.supervise import cancel_and_wait
from fairlead_tools.registry.registry import Registration, Registry
from fairlead_tools.registry.tool import Tool

if TYPE_CHECKING:
    from fairlead_tools.servers.connection import ServerConnection

log = logging.getLogger(__name__)

OWNER: Final = "mcp"
RANK: Final = 10
# How long the service waits for the first lists before it answers without them.
FIRST_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ServerBinding:
    """One server as somebody sees it. Those with a seat of their own do not see everybody's."""

    name: str
    server: ToolServerConfig
    credentials: Credentials
    tenant: TenantId | None = None
    except_tenants: frozenset[TenantId] = frozenset()


def server_bindings(config: Config) -> tuple[ServerBinding, ...]:
    """Every connection that the configuration asks for, in its order."""
    found: list[ServerBinding] = []
    for name, server in config.mcp.items():
        if not server.enabled:
            continue
        own = {
            tenant: settings.mcp[name]
            for tenant, settings in config.tenant.items()
            if name in settings.mcp
        }
        found.append(ServerBinding(name, server, server, None, frozenset(own)))
        found += [
            ServerBinding(name, server, laid.merge_over(server), tenant)
            for tenant, laid in own.items()
        ]
    return tuple(found)


class ToolServers:
    """Keeps the registry's tools of servers as the servers list them."""

    def __init__(self, config: Config, registry: Registry) -> None:
        self._seats = server_bindings(config)
        self._registry = registry
        self._tools: dict[int, tuple[Tool, ...]] = {}

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[None]:
        """Hold every connection for the length of a block."""
        if not self._seats:
            yield
            return
        # The library takes a while to load: only who has servers waits for it.
        live = await asyncio.to_thread(importlib.import_module, "fairlead_tools.servers.connection")
        connections: list[ServerConnection] = [
            live.Connection(
                seat.name,
                seat.server,
                seat.credentials,
                lambda tools, n=n: self._on_tools(n, tools),
            )
            for n, seat in enumerate(self._seats)
        ]
        tasks = [asyncio.create_task(one.run()) for one in connections]
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_S):
                    await asyncio.gather(*(one.listed.wait() for one in connections))
            yield
        finally:
            await cancel_and_wait(*tasks)
            self._registry.replace_owned(OWNER, ())

    def _on_tools(self, seat: int, tools: tuple[Tool, ...]) -> None:
        self._tools[seat] = tools
        self._registry.replace_owned(OWNER, self._registrations())

    def _registrations(self) -> list[Registration]:
        """All of them in configured order, whichever was listed first."""
        made: list[Registration] = []
        for n, seat in enumerate(self._seats):
            for tool in self._tools.get(n, ()):
                if self._taken(tool.name, seat, made):
                    extra = {"server": seat.name, "tool": tool.name, "reason": "its name is taken"}
                    log.warning("tool of a server refused", extra=extra)
                    continue
                made.append(Registration(tool, seat.tenant, None, OWNER, RANK, seat.except_tenants))
        return made

    def _taken(self, name: str, seat: ServerBinding, made: list[Registration]) -> bool:
        """A server's tool never stands before one of the service or of another server."""
        if self._registry.is_builtin(name):
            return True
        return any(
            one.tool.name == name
            and (None in {one.tenant, seat.tenant} or one.tenant == seat.tenant)
            and not (one.tenant is None and seat.tenant in one.except_tenants)
            for one in made
        )
