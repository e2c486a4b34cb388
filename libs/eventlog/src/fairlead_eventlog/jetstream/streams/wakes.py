"""Wakes on JetStream: one message per session, and a lane for each tenant."""

from collections.abc import AsyncIterator

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import (
    NO_CONSUMER,
    SUBJECT_FULL,
    Link,
    NoAnswer,
    ServerRefusal,
    stream_error,
)
from fairlead_eventlog.jetstream.messages import purge_subject
from fairlead_eventlog.jetstream.streams.lanes import LANE_OPENED, Lanes, lane_names
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_eventlog.streams import WAKES, lane, lane_consumer
from fairlead_schema import subjects
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address


class JetStreamWakes:
    """Leaves wakes, and takes them fairly."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lanes: set[TenantId] = set()

    async def wake(self, at: Address) -> bool:
        if at.tenant not in self._lanes:
            await self._open(at.tenant)
        try:
            await self._link.store(subjects.wake(at), b"")
        except ServerRefusal as refusal:
            if refusal.code == SUBJECT_FULL:
                return False
            raise stream_error(refusal, WAKES.name) from refusal
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("the wake was not acknowledged") from error
        return True

    async def renew(self, at: Address) -> bool:
        if await self._waits(at):
            return False
        await purge_subject(self._link, WAKES.name, subjects.wake(at))
        return await self.wake(at)

    def take(self, slots: Slots) -> AsyncIterator[Job]:
        return Lanes(self._link, slots).jobs()

    async def _waits(self, at: Address) -> bool:
        """Whether the lane has not come to the wake that is there: it was given to nobody yet."""
        left = await self._link.last_message(WAKES.name, subjects.wake(at))
        if left is None:
            return False
        try:
            told = await self._link.api(f"CONSUMER.INFO.{WAKES.name}.{lane(at.tenant)}")
        except ServerRefusal as refusal:
            if refusal.code == NO_CONSUMER:
                return False
            raise stream_error(refusal, WAKES.name) from refusal
        return left.sequence > int(told["delivered"]["stream_seq"])

    async def _open(self, tenant: TenantId) -> None:
        """Make a tenant's lane if it is not there; the deadline is that of the default lane."""
        try:
            names = await lane_names(self._link)
            if lane(tenant) not in names:
                known = await self._link.api(f"CONSUMER.INFO.{WAKES.name}.{lane('default')}")
                ack_wait_s = known["config"]["ack_wait"] / 1e9
                config = lane_consumer(tenant, ack_wait_s=ack_wait_s)
                await self._link.api(f"CONSUMER.CREATE.{WAKES.name}.{lane(tenant)}", config)
                await self._link.send(LANE_OPENED, tenant.encode())
        except ServerRefusal as refusal:
            raise stream_error(refusal, WAKES.name) from refusal
        self._lanes.add(tenant)
