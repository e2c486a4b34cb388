"""Wakes on JetStream: one message per session, and a lane for each tenant.

A tenant has a consumer of its own, so that a tenant with many waiting sessions does not delay a
tenant with one. The first wake of a tenant creates its lane and announces it to the runners.
"""

from collections.abc import AsyncIterator

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import (
    NO_CONSUMER,
    SUBJECT_FULL,
    NatsLink,
    NoAnswer,
    ServerRefusal,
    stream_error,
)
from fairlead_eventlog.jetstream.messages import purge_subject
from fairlead_eventlog.jetstream.streams.lanes import Lanes, lane_names
from fairlead_eventlog.ports import Job
from fairlead_eventlog.positions import encode_position
from fairlead_eventlog.slots import Slots
from fairlead_eventlog.streams import WAKES, lane, lane_consumer
from fairlead_schema import subjects
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import LANE_OPENED, Address


class JetStreamWakes:
    """Leaves wakes, and takes them fairly from all tenants."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._open_lanes: set[TenantId] = set()

    async def wake(self, at: Address, *, position: int | None = None) -> bool:
        if at.tenant not in self._open_lanes:
            await self._open_lane(at.tenant)
        try:
            await self._link.store(subjects.wake(at), encode_position(position))
        except ServerRefusal as refusal:
            if refusal.code == SUBJECT_FULL:
                return False
            raise stream_error(refusal, WAKES.name) from refusal
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("the wake was not acknowledged") from error
        return True

    async def renew(self, at: Address, *, position: int | None = None) -> bool:
        if await self._is_undelivered(at):
            return False
        await purge_subject(self._link, WAKES.name, subjects.wake(at))
        return await self.wake(at, position=position)

    def take(self, slots: Slots) -> AsyncIterator[Job]:
        return Lanes(self._link, slots).jobs()

    async def _is_undelivered(self, at: Address) -> bool:
        """Whether the stored wake waits for its first delivery."""
        wake = await self._link.last_message(WAKES.name, subjects.wake(at))
        if wake is None:
            return False
        try:
            consumer = await self._link.api(f"CONSUMER.INFO.{WAKES.name}.{lane(at.tenant)}")
        except ServerRefusal as refusal:
            if refusal.code == NO_CONSUMER:
                return False
            raise stream_error(refusal, WAKES.name) from refusal
        return wake.sequence > int(consumer["delivered"]["stream_seq"])

    async def _open_lane(self, tenant: TenantId) -> None:
        """Create a tenant's lane if it does not exist, with the deadline of the default lane."""
        try:
            names = await lane_names(self._link)
            if lane(tenant) not in names:
                default = await self._link.api(f"CONSUMER.INFO.{WAKES.name}.{lane('default')}")
                ack_wait_s = default["config"]["ack_wait"] / 1e9
                config = lane_consumer(tenant, ack_wait_s=ack_wait_s)
                await self._link.api(f"CONSUMER.CREATE.{WAKES.name}.{lane(tenant)}", config)
                await self._link.send(LANE_OPENED, tenant.encode())
        except ServerRefusal as refusal:
            raise stream_error(refusal, WAKES.name) from refusal
        self._open_lanes.add(tenant)
