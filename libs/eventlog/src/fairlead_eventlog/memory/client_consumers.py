"""The consumers of tenants' own clients, in memory."""

from fairlead_eventlog.ports import ClientConsumer
from fairlead_eventlog.streams import EVENTS, JOBS
from fairlead_schema import subjects
from fairlead_schema.ids import TenantId


class MemoryClientConsumers:
    """Remembers which consumers were opened, and from where."""

    def __init__(self) -> None:
        self.opened: dict[ClientConsumer, int | None] = {}

    async def open_feed(
        self, tenant: TenantId, principal: str, *, after: int | None
    ) -> ClientConsumer:
        consumer = ClientConsumer(EVENTS.name, subjects.feed_consumer(tenant, principal))
        self.opened[consumer] = after
        return consumer

    async def open_jobs(self, tenant: TenantId, principal: str) -> ClientConsumer:
        consumer = ClientConsumer(JOBS.name, subjects.job_consumer(tenant, principal))
        self.opened[consumer] = None
        return consumer
