"""The life that the hubs of tenants share: listen, work off what comes in order, end together."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.tenant_broadcasts import (
    StopListening,
    TenantBroadcasts,
    TenantListener,
)
from fairlead_schema.delta import Delta
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_service.logs import unbound_context
from fairlead_service.supervise import cancel_and_wait

log = logging.getLogger(__name__)

WAITING_MAX: Final = 4096
"""How many broadcasts may wait. More than that, and the clients have to start over."""

Item = TypeVar("Item")
Sources = TypeVar("Sources")
Sources_contra = TypeVar("Sources_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class HubDuties(Generic[Item]):
    """What a hub does with what comes, and when it ends."""

    receive: Callable[[Address, CommitHint | Delta], None]
    """Takes a broadcast, and must not block."""
    handle: Callable[[Item], Awaitable[None]]
    """Handles one item of the queue."""
    end_clients: Callable[[BaseException], None]
    missed: str
    """What clients are told if the hub may have missed something."""


class HubLife(Generic[Item]):
    """One hub's subscriptions and its queue."""

    def __init__(
        self, tenant: TenantId, broadcasts: TenantBroadcasts, duties: HubDuties[Item]
    ) -> None:
        self._duties = duties
        self._queue: asyncio.Queue[Item] = asyncio.Queue(WAITING_MAX)
        self.error: BaseException | None = None
        """Why the hub has ended, if it has."""
        # The first client opens the hub, which then works for all of them.
        context = unbound_context()
        self._opening = asyncio.create_task(self._listen(tenant, broadcasts), context=context)
        self.working = asyncio.create_task(self._work(), context=context)
        self.working.add_done_callback(self._end_with)

    @property
    def has_ended(self) -> bool:
        """Whether the hub missed something. New clients then need a new hub."""
        failed = self._opening.done() and self._opening.exception() is not None
        return self.error is not None or failed

    async def wait_until_open(self) -> None:
        """Wait until the server knows that the hub listens. Raises LogUnavailable."""
        await asyncio.shield(self._opening)

    def offer(self, item: Item) -> None:
        """Queue an item. Without room all clients start over."""
        try:
            self._queue.put_nowait(item)
        except asyncio.QueueFull:
            log.warning("live events come faster than they are handled: all clients start over")
            self.end()

    async def put(self, item: Item) -> None:
        """Queue an item when there is room."""
        await self._queue.put(item)

    def end(self, error: BaseException | None = None) -> None:
        """End every client, because something may be missing or went wrong."""
        self.error = error or ServiceUnavailable(self._duties.missed, service="nats")
        self._duties.end_clients(self.error)

    async def close(self) -> None:
        """End the subscriptions."""
        await cancel_and_wait(self.working)
        if self._opening.done() and self._opening.exception() is None:
            self._opening.result()()
        await cancel_and_wait(self._opening)

    async def _listen(self, tenant: TenantId, broadcasts: TenantBroadcasts) -> StopListening:
        receive = self._duties.receive
        return await broadcasts.listen(tenant, TenantListener(receive, receive, self.end))

    async def _work(self) -> None:
        while True:
            await self._duties.handle(await self._queue.get())

    def _end_with(self, task: "asyncio.Task[None]") -> None:
        """End every client with the error of the hub. A closed hub has no clients."""
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("live clients start over: their events cannot be handled", exc_info=error)
            self.end(error)


class SharedHub(Protocol[Sources_contra]):
    """A hub that many clients of a tenant share. `visitors` counts who uses it."""

    visitors: int

    @property
    def life(self) -> HubLife[Any]: ...

    def uses(self, sources: Sources_contra) -> bool:
        """Whether the hub reads from these sources. A new connection to NATS has new ones."""

    async def close(self) -> None:
        """End the hub."""


Hub = TypeVar("Hub", bound=SharedHub[Any])


class HubsByTenant(Generic[Hub, Sources]):
    """Opens a hub for the first client of a tenant, and closes it after the last one."""

    def __init__(self, make: Callable[[TenantId, Sources], Hub]) -> None:
        self._make = make
        self._hubs: dict[TenantId, Hub] = {}

    def __len__(self) -> int:
        return len(self._hubs)

    def peek(self, tenant: TenantId) -> Hub | None:
        """The hub of a tenant, if it has clients."""
        return self._hubs.get(tenant)

    @asynccontextmanager
    async def enter(self, tenant: TenantId, sources: Sources) -> AsyncIterator[Hub]:
        """The open hub of a tenant for the length of a block. Raises LogUnavailable."""
        hub = self._hubs.get(tenant)
        if hub is None or hub.life.has_ended or not hub.uses(sources):
            hub = self._hubs[tenant] = self._make(tenant, sources)
        hub.visitors += 1
        try:
            await hub.life.wait_until_open()
            yield hub
        finally:
            hub.visitors -= 1
            if not hub.visitors:
                if self._hubs.get(tenant) is hub:
                    del self._hubs[tenant]
                await hub.close()
