"""The tenant hubs of one gateway: one for each tenant with clients of `GET /api/event`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairlead_gateway.live.tenant_hub import TenantHub, TenantSources
from fairlead_schema.ids import TenantId


class TenantHubs:
    """Opens a hub for the first client of a tenant, and closes it after the last one."""

    def __init__(self) -> None:
        self._hubs: dict[TenantId, TenantHub] = {}

    def __len__(self) -> int:
        return len(self._hubs)

    @asynccontextmanager
    async def enter(self, tenant: TenantId, sources: TenantSources) -> AsyncIterator[TenantHub]:
        """The open hub of a tenant for the length of a block. Raises LogUnavailable."""
        hub = self._hubs.get(tenant)
        if hub is None or hub.has_ended or not hub.uses(sources):
            hub = self._hubs[tenant] = TenantHub(tenant, sources)
        hub.visitors += 1
        try:
            await hub.wait_until_open()
            yield hub
        finally:
            hub.visitors -= 1
            if not hub.visitors:
                if self._hubs.get(tenant) is hub:
                    del self._hubs[tenant]
                await hub.close()
