"""What every route works with: settings, NATS, the read models, and the shutdown signal."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from fairlead_eventlog.ports import Deltas, Requests, SessionLog, ShardLog
from fairlead_eventlog.register_ports import OutputStore, Snapshots
from fairlead_eventlog.replicas.open_texts import OpenTextsPort
from fairlead_eventlog.replicas.tenant_broadcasts import TenantBroadcasts
from fairlead_eventlog.status.log_status import LogStatusRegister
from fairlead_gateway.console.sealed_cookie import Sealer
from fairlead_gateway.console.used_tickets import UsedTickets
from fairlead_gateway.http.failed_logins import FailedLogins
from fairlead_gateway.http.principal_limits import PrincipalLimits
from fairlead_gateway.live.hub_life import HubsByTenant
from fairlead_gateway.live.hub_registry import HubRegistry
from fairlead_gateway.live.tenant_hub import TenantHub, TenantSources
from fairlead_gateway.reads.own_writes import OwnWrites
from fairlead_gateway.reads.read_model import ReadModel
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.errors import ServiceUnavailable
from fairlead_service.identity.authenticator import Authenticator


class NatsPorts(Protocol):
    """The ports over NATS that the gateway uses."""

    @property
    def log(self) -> SessionLog: ...

    @property
    def shards(self) -> ShardLog: ...

    @property
    def status(self) -> LogStatusRegister: ...

    @property
    def snapshots(self) -> Snapshots: ...

    @property
    def deltas(self) -> Deltas: ...

    @property
    def open_texts(self) -> OpenTextsPort: ...

    @property
    def tenant_broadcasts(self) -> TenantBroadcasts: ...

    @property
    def outputs(self) -> OutputStore: ...

    @property
    def attachments(self) -> OutputStore: ...

    @property
    def requests(self) -> Requests: ...

    @property
    def complaint(self) -> Callable[[], str | None]: ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """The dependencies of all routes."""

    settings: GatewaySettings
    nats_connection: Callable[[], NatsPorts | None]
    """Returns the current connection to NATS, or None while there is none."""
    read_model: ReadModel
    authenticator: Authenticator
    limits: PrincipalLimits
    sealer: Sealer = field(default_factory=Sealer.random)
    """Seals the cookies of browsers."""
    used_tickets: UsedTickets = field(default_factory=UsedTickets)
    failed_logins: FailedLogins = field(default_factory=FailedLogins)
    own_writes: OwnWrites = field(default_factory=OwnWrites)
    hubs: HubRegistry = field(default_factory=HubRegistry)
    tenant_hubs: HubsByTenant[TenantHub, TenantSources] = field(
        default_factory=lambda: HubsByTenant(TenantHub)
    )
    shutdown: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process must stop. Streams and waits then end at once."""

    def nats(self) -> NatsPorts:
        """The connection to NATS. Raises ServiceUnavailable at once if NATS is away."""
        ports = self.nats_connection()
        reason = "NATS is not connected" if ports is None else ports.complaint()
        if ports is None or reason is not None:
            raise ServiceUnavailable(f"The log is not available: {reason}", service="nats")
        return ports
