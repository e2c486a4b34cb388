"""The hubs of one gateway: one per session with stream clients, and none without."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairlead_eventlog.ports import Head
from fairlead_gateway.live.session_hub import HubSources, SessionHub
from fairlead_schema.subjects import Address


class HubRegistry:
    """Opens a hub for the first client of a session, and closes it after the last one."""

    def __init__(self) -> None:
        self._hubs: dict[Address, SessionHub] = {}

    def __len__(self) -> int:
        return len(self._hubs)

    @asynccontextmanager
    async def enter(
        self, at: Address, sources: HubSources, *, head: Head
    ) -> AsyncIterator[SessionHub]:
        """The hub of a session for the length of a block. A new hub follows the log from `head` on."""
        hub = self._hubs.get(at)
        if hub is None or hub.error is not None or not hub.uses(sources):
            hub = self._hubs[at] = SessionHub(at, sources, after=head)
        hub.visitors += 1
        try:
            yield hub
        finally:
            hub.visitors -= 1
            if not hub.visitors:
                if self._hubs.get(at) is hub:
                    del self._hubs[at]
                await hub.close()
