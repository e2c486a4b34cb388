"""The consumers of tenants' own clients, which may pull from them but never create them.

A consumer names its filter in the body of the request that creates it, where no grant can look.
"""

from typing import Any, Final

from fairlead_eventlog.jetstream.link import NO_CONSUMER, NatsLink, ServerRefusal, stream_error
from fairlead_eventlog.ports import ClientConsumer
from fairlead_eventlog.streams import EVENTS, JOBS
from fairlead_schema import subjects
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import ROOT

ACK_WAIT_S: Final = 30
PENDING_MAX: Final = 1_000


class JetStreamClientConsumers:
    """Creates the consumers that grants name, each with the filter of its owner."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def open_feed(
        self, tenant: TenantId, principal: str, *, after: int | None
    ) -> ClientConsumer:
        consumer = ClientConsumer(EVENTS.name, subjects.feed_consumer(tenant, principal))
        config = _config(consumer, f"{ROOT}.event.{tenant}.>")
        if after is not None:
            await self._remove(consumer)
            config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": after + 1}
        elif await self._exists(consumer):
            return consumer
        await self._create(consumer, config)
        return consumer

    async def open_jobs(self, tenant: TenantId, principal: str) -> ClientConsumer:
        consumer = ClientConsumer(JOBS.name, subjects.job_consumer(tenant, principal))
        prefix = subjects.queued_tool_prefix(tenant)
        await self._create(consumer, _config(consumer, f"{prefix}{principal}.>"))
        return consumer

    async def _exists(self, consumer: ClientConsumer) -> bool:
        try:
            await self._link.api(f"CONSUMER.INFO.{consumer.stream}.{consumer.name}")
        except ServerRefusal as refusal:
            if refusal.code == NO_CONSUMER:
                return False
            raise stream_error(refusal, consumer.stream) from refusal
        return True

    async def _remove(self, consumer: ClientConsumer) -> None:
        try:
            await self._link.api(f"CONSUMER.DELETE.{consumer.stream}.{consumer.name}")
        except ServerRefusal as refusal:
            if refusal.code != NO_CONSUMER:
                raise stream_error(refusal, consumer.stream) from refusal

    async def _create(self, consumer: ClientConsumer, config: dict[str, Any]) -> None:
        body = {"stream_name": consumer.stream, "config": config}
        try:
            await self._link.api(f"CONSUMER.CREATE.{consumer.stream}.{consumer.name}", body)
        except ServerRefusal as refusal:
            raise stream_error(refusal, consumer.stream) from refusal


def _config(consumer: ClientConsumer, filter_subject: str) -> dict[str, Any]:
    return {
        "durable_name": consumer.name,
        "name": consumer.name,
        "ack_policy": "explicit",
        "ack_wait": ACK_WAIT_S * 1_000_000_000,
        "max_ack_pending": PENDING_MAX,
        "deliver_policy": "all",
        "filter_subject": filter_subject,
    }
