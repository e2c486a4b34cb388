"""A webhook as it is stored, with its secrets, and what the hooks service notes of it."""

from typing import Annotated

from pydantic import Field

from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import DeliveryId, SessionId, WebhookId
from fairlead_schema.model import Model
from fairlead_schema.webhooks.event_names import WebhookEvent


class WebhookSecret(Model):
    """One of the secrets that sign deliveries."""

    id: str
    secret: Annotated[str, Field(repr=False)]
    created: int


class WebhookRecord(Model):
    """A registered webhook."""

    id: WebhookId
    url: str
    events: tuple[WebhookEvent, ...]
    name: str | None = None
    paused: bool = False
    secrets: Annotated[tuple[WebhookSecret, ...], Field(repr=False)]
    """Every one of them signs each delivery, so that receivers can change to a new one."""
    by: PrincipalName | None = None
    created: int
    changed: int
    after: int
    """The sequence of the feed at the creation: only later events are sent."""


class WebhookState(Model):
    """How a webhook fares, as the hooks service saw it last."""

    gone_since: int | None = None
    """When the receiver answered 410: nothing is sent until the webhook is changed."""
    gone_change: int | None = None
    """The `changed` of the webhook at that time. A later change takes the 410 back."""
    failing_since: int | None = None
    reason: str | None = None
    """Why the last attempt failed; absent if it did not."""


class UndeliveredEvent(Model):
    """A delivery that was given up. It names its event and does not contain it."""

    id: DeliveryId
    webhook_id: WebhookId
    event_id: str
    type: str
    session_id: SessionId
    sequence: int
    """The place of the event in the feed."""
    attempts: int
    reason: str
    time: int


def is_gone(record: WebhookRecord, state: WebhookState) -> bool:
    """Whether the receiver said that it is gone, and nobody has changed the webhook since."""
    return state.gone_since is not None and state.gone_change == record.changed
