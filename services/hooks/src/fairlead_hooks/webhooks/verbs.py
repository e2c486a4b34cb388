"""`webhook.test`, `webhook.undelivered`, `webhook.redeliver`: sent while the caller waits."""

import secrets
from typing import Annotated, Final, TypeAlias

import orjson
from faststream import Context

from fairlead_eventlog.connection import EventLog
from fairlead_hooks.settings import HooksSettings
from fairlead_hooks.webhooks.post import post_event
from fairlead_schema import subjects
from fairlead_schema.commands.hooks.webhooks import (
    DeliveryOutcome,
    RedeliverEvent,
    UndeliveredEvents,
    WebhookQuery,
)
from fairlead_schema.errors import DeliveryNotFound, WebhookNotFound
from fairlead_schema.ids import DeliveryId, TenantId, WebhookId
from fairlead_schema.webhooks.event_names import WEBHOOK_EVENTS
from fairlead_schema.webhooks.record import UndeliveredEvent, WebhookRecord
from fairlead_service.audit import audit_command
from fairlead_service.ids import now_ms
from fairlead_service.rpc.server import RpcServer, TenantParam
from fairlead_session.webhooks.attempts import DeliveryAttempt
from fairlead_session.webhooks.delivery import cloud_event, delivery_id, trial_event
from fairlead_session.webhooks.selection import select_event

LISTED_MAX: Final = 1_000


class WebhookVerbs:
    """Sends single deliveries on request."""

    def __init__(self, eventlog: EventLog, settings: HooksSettings) -> None:
        self._eventlog = eventlog
        self._settings = settings

    async def send_trial(self, tenant: TenantId, id_: WebhookId) -> DeliveryOutcome:
        """Post a CloudEvent of its own type. The answer says what the receiver said."""
        record = await self._find(tenant, id_)
        event_id = f"evt_{secrets.token_hex(16)}"
        event = trial_event(tenant, record.id, event_id, now_ms())
        delivery = delivery_id(record.id, event_id)
        return _outcome(delivery, await post_event(record, delivery, event, self._settings.hooks))

    async def list_undelivered(self, tenant: TenantId, id_: WebhookId) -> UndeliveredEvents:
        """The deliveries of one webhook that were given up, oldest first."""
        await self._find(tenant, id_)
        stored = await self._eventlog.undelivered.get_all(tenant)
        found = [
            UndeliveredEvent.model_validate_json(value)
            for key, value in stored.items()
            if key.startswith(f"{id_}.")
        ]
        found.sort(key=lambda given_up: (given_up.time, given_up.sequence))
        return UndeliveredEvents(deliveries=tuple(found[:LISTED_MAX]))

    async def redeliver(self, tenant: TenantId, command: RedeliverEvent) -> DeliveryOutcome:
        """Post an event once more under its old id. A success removes it from the list."""
        record = await self._find(tenant, command.id)
        key = f"{record.id}.{command.delivery_id}"
        stored = await self._eventlog.undelivered.read(tenant, key)
        if stored is None:
            raise DeliveryNotFound(command.delivery_id, "it is not among those that were given up")
        given_up = UndeliveredEvent.model_validate_json(stored.value)
        message = await self._eventlog.feed_consumers.message_at(given_up.sequence)
        envelope = {} if message is None else orjson.loads(message.payload)
        if message is None or envelope["id"] != given_up.event_id:
            raise DeliveryNotFound(command.delivery_id, "the feed does not have its event any more")
        type_, data = message.subject.split(".", 4)[4], envelope["data"]
        chosen = select_event(record.events, type_, data)
        # It was given up, so somebody chose it. The webhook may have chosen others since.
        kind = chosen or select_event(WEBHOOK_EVENTS, type_, data)
        if kind is None:
            raise DeliveryNotFound(command.delivery_id, "no webhook gets its event any more")
        event = cloud_event(subjects.event_address(message.subject), envelope, kind)
        attempt = await post_event(record, given_up.id, event, self._settings.hooks)
        if attempt.delivered:
            await self._eventlog.undelivered.remove(tenant, key)
        return _outcome(given_up.id, attempt)

    async def _find(self, tenant: TenantId, id_: WebhookId) -> WebhookRecord:
        found = await self._eventlog.webhooks.read(tenant, id_)
        if found is None:
            raise WebhookNotFound(id_)
        return WebhookRecord.model_validate_json(found.value)


def _outcome(id_: DeliveryId, attempt: DeliveryAttempt) -> DeliveryOutcome:
    return DeliveryOutcome(
        id=id_, delivered=attempt.delivered, status=attempt.status, reason=attempt.reason
    )


VERBS: Final = "webhook_verbs"
VerbsDep: TypeAlias = Annotated[WebhookVerbs, Context(VERBS)]


async def _send_trial(
    verbs: VerbsDep, tenant: TenantParam, command: WebhookQuery
) -> DeliveryOutcome:
    """Post a trial."""
    audit_command("webhook.test", tenant, command.id)
    return await verbs.send_trial(tenant, command.id)


async def _list_undelivered(
    verbs: VerbsDep, tenant: TenantParam, command: WebhookQuery
) -> UndeliveredEvents:
    """List what was given up."""
    return await verbs.list_undelivered(tenant, command.id)


async def _redeliver(
    verbs: VerbsDep, tenant: TenantParam, command: RedeliverEvent
) -> DeliveryOutcome:
    """Post an event again."""
    audit_command("webhook.redeliver", tenant, command.delivery_id)
    return await verbs.redeliver(tenant, command)


def serve_webhook_verbs(server: RpcServer) -> None:
    """Serve the verbs. The server gets their dependency before it starts."""
    server.serve_verb("webhook.test", _send_trial)
    server.serve_verb("webhook.undelivered", _list_undelivered)
    server.serve_verb("webhook.redeliver", _redeliver)
