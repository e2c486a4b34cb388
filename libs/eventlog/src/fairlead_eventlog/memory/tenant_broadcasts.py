"""Broadcasts of all sessions of a tenant in memory."""

from collections import defaultdict

from fairlead_eventlog.memory.deltas import MemoryDeltas
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.tenant_broadcasts import StopListening, TenantListener
from fairlead_schema.delta import Delta
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address


class MemoryTenantBroadcasts:
    """Passes on what a log and its deltas announce."""

    def __init__(self, log: MemoryLog, deltas: MemoryDeltas) -> None:
        self.listeners: defaultdict[TenantId, list[TenantListener]] = defaultdict(list)
        log.announce = self._announce_commit
        deltas.announce = self._announce_delta

    async def listen(self, tenant: TenantId, listener: TenantListener) -> StopListening:
        self.listeners[tenant].append(listener)
        return lambda: self.listeners[tenant].remove(listener)

    def lose(self, tenant: TenantId) -> None:
        """Tell every listener of a tenant that the connection was away."""
        for listener in tuple(self.listeners[tenant]):
            listener.on_loss()

    def _announce_commit(self, at: Address, commit: CommitHint) -> None:
        for listener in tuple(self.listeners[at.tenant]):
            listener.on_commit(at, commit)

    def _announce_delta(self, at: Address, delta: Delta) -> None:
        for listener in tuple(self.listeners[at.tenant]):
            listener.on_delta(at, delta)
