"""The lane of one webhook: its own consumer, its own slots, so that no receiver delays another one."""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any, Final, cast

import orjson

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.feed.consumer_ports import FeedFilter
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_hooks import metrics
from fairlead_hooks.settings import HooksSettings
from fairlead_hooks.webhooks.health import WebhookHealth
from fairlead_hooks.webhooks.post import post_event
from fairlead_schema import subjects
from fairlead_schema.ids import TenantId
from fairlead_schema.webhooks.record import UndeliveredEvent, WebhookRecord
from fairlead_service.ids import now_ms
from fairlead_service.supervise import cancel_and_wait, report_defects, supervise
from fairlead_session.webhooks.attempts import DeliveryAttempt, TryAgain, judge_attempt
from fairlead_session.webhooks.delivery import cloud_event, delivery_id
from fairlead_session.webhooks.selection import feed_types, select_event

log = logging.getLogger(__name__)

PREFIX: Final = "hook"
# A receiver that is gone gets nothing. The events stay pending until somebody changes the webhook.
GONE_PAUSE_S: Final = 60.0
# The lane of a changed webhook closes in a moment. The lane after it takes the event.
CHANGED_PAUSE_S: Final = 1.0


def consumer_name(tenant: TenantId, webhook_id: str) -> str:
    """The consumer of a webhook. Neither a tenant nor an id contains the separator."""
    return f"{PREFIX}={tenant}={webhook_id}"


def parse_consumer_name(name: str) -> tuple[TenantId, str] | None:
    """The tenant and the webhook of a consumer; None for the consumers of others."""
    prefix, *rest = name.split("=")
    return (rest[0], rest[1]) if prefix == PREFIX and len(rest) == 2 else None  # noqa: PLR2004


class Lane:
    """Delivers the events of one webhook, several at once. Each is tried again by itself."""

    def __init__(
        self,
        eventlog: EventLog,
        settings: HooksSettings,
        tenant: TenantId,
        record: WebhookRecord,
        health: WebhookHealth,
    ) -> None:
        self.record = record
        self.health = health
        self._eventlog = eventlog
        self._settings = settings
        self._tenant = tenant
        self._name = consumer_name(tenant, record.id)
        self._slots = Slots(settings.hooks.concurrency)
        self._deliveries: set[asyncio.Task[None]] = set()
        self._taking = asyncio.create_task(
            supervise(f"webhook {record.id}", self._take, report=report_defects(LogError))
        )

    async def close(self) -> None:
        """Take no more events, and let the attempts under way end: each has its time limit."""
        await cancel_and_wait(self._taking)
        if self._deliveries:
            await asyncio.wait(self._deliveries)

    async def _take(self) -> None:
        hooks = self._settings.hooks
        await self._eventlog.feed_consumers.open(
            FeedFilter(
                tenant=self._tenant,
                name=self._name,
                types=feed_types(self.record.events),
                after=self.record.after,
                deadline_s=self._settings.deadline_s,
                pending_max=hooks.pending_max,
            )
        )
        jobs = self._eventlog.feed_consumers.take(self._name, self._slots)
        async with aclosing(cast("Any", jobs)) as taken:
            async for job in taken:
                task = asyncio.create_task(self._handle(job))
                self._deliveries.add(task)
                task.add_done_callback(self._deliveries.discard)

    async def _handle(self, job: Job) -> None:
        """Deliver one event. A failure of the log leaves the event for a later delivery."""
        async with job:
            try:
                await self._deliver(job)
            except LogError as error:
                log.warning(
                    "a delivery was not acknowledged: the event comes again",
                    extra={"webhook": self.record.id, "reason": str(error)},
                )
            except Exception:
                log.exception(
                    "a delivery failed: the event comes again", extra={"webhook": self.record.id}
                )

    async def _deliver(self, job: Job) -> None:
        at, type_ = subjects.event_address(job.subject), job.subject.split(".", 4)[4]
        envelope = orjson.loads(job.payload)
        kind = select_event(self.record.events, type_, envelope["data"])
        if kind is None:
            await job.ack()
            return
        if self.health.gone:
            await job.retry_later(GONE_PAUSE_S)
            return
        if not await self._is_current():
            await job.retry_later(CHANGED_PAUSE_S)
            return
        id_ = delivery_id(self.record.id, envelope["id"])
        attempt = await post_event(
            self.record, id_, cloud_event(at, envelope, kind), self._settings.hooks
        )
        await self._settle(job, attempt, partial(self._describe_failure, job, envelope, attempt))

    async def _is_current(self) -> bool:
        """Whether nobody has paused, changed or removed the webhook: the leader has the last word."""
        found = await self._eventlog.webhooks.read(self._tenant, self.record.id)
        return found is not None and WebhookRecord.model_validate_json(found.value) == self.record

    async def _settle(
        self, job: Job, attempt: DeliveryAttempt, undelivered: Callable[[], UndeliveredEvent]
    ) -> None:
        policy, chance = self._settings.policy, random.random()  # noqa: S311 - spreads load
        verdict = judge_attempt(attempt, job.deliveries, policy, chance=chance)
        match verdict:
            case "delivered":
                await job.ack()
                metrics.DELIVERED.inc()
                await self.health.note_success()
            case "gone":
                await job.retry_later(GONE_PAUSE_S)
                await self.health.note_gone(attempt.reason)
            case "given-up":
                # First the note: a crash in between gives the delivery up once more, under its id.
                await self._note_undelivered(undelivered())
                await job.ack()
                await self.health.note_failure(attempt.reason)
            case TryAgain(after_s):
                await job.retry_later(after_s)
                await self.health.note_failure(attempt.reason)

    async def _note_undelivered(self, given_up: UndeliveredEvent) -> None:
        metrics.GIVEN_UP.inc()
        log.warning(
            "a delivery was given up: send it again with `fairlead webhook redeliver`",
            extra={"webhook": self.record.id, "delivery": given_up.id, "reason": given_up.reason},
        )
        key = f"{self.record.id}.{given_up.id}"
        value = given_up.model_dump_json(by_alias=True, exclude_none=True).encode()
        await self._eventlog.undelivered.put(self._tenant, key, value)

    def _describe_failure(
        self, job: Job, envelope: dict[str, Any], attempt: DeliveryAttempt
    ) -> UndeliveredEvent:
        return UndeliveredEvent(
            id=delivery_id(self.record.id, envelope["id"]),
            webhook_id=self.record.id,
            event_id=envelope["id"],
            type=envelope["type"],
            session_id=subjects.event_address(job.subject).session_id,
            sequence=job.sequence,
            attempts=job.deliveries,
            reason=attempt.reason or "the receiver did not accept it",
            time=now_ms(),
        )
