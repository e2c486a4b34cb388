"""Everything that happens in the sessions of one tenant, as it happens: commits and live fragments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_schema.delta import Delta
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address

StopListening: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class TenantListener:
    """What to do with each commit and each fragment. The functions must not block."""

    on_commit: Callable[[Address, CommitHint], None]
    on_delta: Callable[[Address, Delta], None]
    on_loss: Callable[[], None]
    """Runs when some may have been lost, because the connection was away."""


class TenantBroadcasts(Protocol):
    """Broadcasts of all sessions of a tenant. Nothing is stored, and whoever was away missed it."""

    async def listen(self, tenant: TenantId, listener: TenantListener) -> StopListening:
        """Listen until the returned function is called. The server knows of it when this returns.

        Raises LogUnavailable.
        """
