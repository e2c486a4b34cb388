"""The hubs of one gateway for terminal clients: one for each tenant that has some."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairlead_gateway.live.hub_life import HubsByTenant
from fairlead_gateway.opencode_view.folded_sessions import ViewSources
from fairlead_gateway.opencode_view.view_hub import ViewHub
from fairlead_gateway.runtime import Runtime
from fairlead_schema.ids import TenantId


class ViewHubs:
    """Opens a hub for the first client of a tenant, and closes it after the last one."""

    def __init__(self) -> None:
        self._hubs: HubsByTenant[ViewHub, ViewSources] = HubsByTenant(ViewHub)

    def peek(self, tenant: TenantId) -> ViewHub | None:
        """The hub of a tenant, if it has clients."""
        return self._hubs.peek(tenant)

    @asynccontextmanager
    async def enter(self, runtime: Runtime, tenant: TenantId) -> AsyncIterator[ViewHub]:
        """The open hub of a tenant for the length of a block. Raises LogUnavailable."""
        nats = runtime.nats()
        sources = ViewSources(
            nats.tenant_broadcasts,
            nats.log,
            nats.snapshots,
            nats.open_texts,
            runtime.read_model,
            runtime.settings.with_defaults,
        )
        async with self._hubs.enter(tenant, sources) as hub:
            yield hub
