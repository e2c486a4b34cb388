"""What this service noted of one kind of registrations. It goes when its registration is gone."""

import time
from typing import Final

from fairlead_eventlog.register_ports import Records
from fairlead_hooks.record_reader import Stored

SETTLE_S: Final = 60.0
"""After the last registration is gone, attempts and runs that were under way may still note something."""


class NotedStates:
    """The states of all tenants. Webhooks and schedules share a bucket; the beginning of an id tells them apart."""

    def __init__(self, states: Records, registrations: Records, prefix: str) -> None:
        self._states = states
        self._registrations = registrations
        self._prefix = prefix
        self._needed_at = time.monotonic()

    async def load(self, registered: Stored) -> Stored:
        """The states. Nothing is read while there is nothing to know."""
        now = time.monotonic()
        if registered:
            self._needed_at = now
        elif now - self._needed_at > SETTLE_S:
            return {}
        states = await self._states.get_all_tenants()
        await self._remove_orphans(registered, states)
        return states

    async def _remove_orphans(self, registered: Stored, states: Stored) -> None:
        for tenant, noted in states.items():
            known = registered.get(tenant, {})
            for id_ in noted:
                if not id_.startswith(self._prefix) or id_ in known:
                    continue
                # Somebody may have registered it a moment ago: the leader has the last word.
                if await self._registrations.read(tenant, id_) is None:
                    await self._states.remove(tenant, id_)
