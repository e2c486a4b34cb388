"""What every route works with: the settings, the log's medium, the read models, the end."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from fairlead_eventlog.ports import Deltas, OutputStore, Requests, SessionLog, Snapshots
from fairlead_gateway.reads.read_model import ReadModel
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.errors import ServiceUnavailable


class Medium(Protocol):
    """The ports over NATS that the gateway uses."""

    @property
    def log(self) -> SessionLog: ...

    @property
    def snapshots(self) -> Snapshots: ...

    @property
    def deltas(self) -> Deltas: ...

    @property
    def outputs(self) -> OutputStore: ...

    @property
    def requests(self) -> Requests: ...

    @property
    def complaint(self) -> Callable[[], str | None]: ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """The gateway while it runs."""

    settings: GatewaySettings
    link: Callable[[], Medium | None]
    """The present connection to NATS, if there is one."""
    read: ReadModel
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process is told to end: streams close at once."""

    def medium(self) -> Medium:
        """The connection to NATS. Raises Unavailable instead of waiting for one that is away."""
        medium = self.link()
        reason = "NATS is not connected" if medium is None else medium.complaint()
        if medium is None or reason is not None:
            raise ServiceUnavailable(f"The log is not available: {reason}", service="nats")
        return medium
