"""A delivery: its id, and the event as a CloudEvent in JSON."""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from fairlead_schema.ids import DeliveryId, TenantId, WebhookId
from fairlead_schema.subjects import ROOT, Address
from fairlead_schema.webhooks.event_names import WebhookEvent

CONTENT_TYPE: Final = "application/cloudevents+json"
TEST_TYPE: Final = "fairlead.webhook.test"


def delivery_id(webhook_id: WebhookId, event_id: str) -> DeliveryId:
    """The id of the delivery of one event to one webhook. Every attempt has the same id."""
    return f"dlv_{sha256(f'{webhook_id} {event_id}'.encode()).hexdigest()[:32]}"


def cloud_event(at: Address, envelope: Mapping[str, Any], kind: WebhookEvent) -> dict[str, Any]:
    """An event of the feed in the structured mode of CloudEvents 1.0. Its data is the envelope."""
    return {
        "specversion": "1.0",
        "id": envelope["id"],
        "source": _source(at.tenant),
        "type": envelope["type"],
        "subject": at.session_id,
        "time": _rfc3339(int(envelope["data"]["timestamp"])),
        "datacontenttype": "application/json",
        "fairleadevent": kind,
        "data": dict(envelope),
    }


def trial_event(
    tenant: TenantId, webhook_id: WebhookId, event_id: str, now_ms: int
) -> dict[str, Any]:
    """The CloudEvent of a trial."""
    return {
        "specversion": "1.0",
        "id": event_id,
        "source": _source(tenant),
        "type": TEST_TYPE,
        "time": _rfc3339(now_ms),
        "datacontenttype": "application/json",
        "data": {"webhookID": webhook_id},
    }


def _source(tenant: TenantId) -> str:
    return f"/{ROOT}/{tenant}"


def _rfc3339(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
