"""Commands about webhooks, and their answers. No answer but the first one shows a secret."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints

from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import DeliveryId, WebhookId
from fairlead_schema.model import InputModel, Model
from fairlead_schema.webhooks.event_names import WebhookEvent
from fairlead_schema.webhooks.record import UndeliveredEvent
from fairlead_schema.webhooks.signature import secret_key

URL_LENGTH_MAX: Final = 2048
SECRETS_MAX: Final = 4


def _check_secret(secret: str) -> str:
    secret_key(secret)
    return secret


OwnSecret: TypeAlias = Annotated[
    str, StringConstraints(max_length=256), AfterValidator(_check_secret)
]
"""A secret that the caller chose: `whsec_` and base64 of 24 to 64 bytes."""
WebhookUrl: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=URL_LENGTH_MAX)]
WebhookEvents: TypeAlias = Annotated[tuple[WebhookEvent, ...], Field(min_length=1, max_length=16)]
HookName: TypeAlias = Annotated[str, StringConstraints(max_length=256)]
WebhookStatus: TypeAlias = Literal["active", "paused", "gone", "failing"]


class CreateWebhook(InputModel):
    """`webhook.create`: send chosen events of the tenant's sessions to a URL from now on."""

    id: WebhookId | None = None
    url: WebhookUrl
    events: WebhookEvents
    name: HookName | None = None
    secret: OwnSecret | None = Field(default=None, repr=False)
    """Absent: Fairlead makes one, and shows it in the answer alone."""


class ChangeWebhookBody(InputModel):
    """What to change. An absent key changes nothing."""

    url: WebhookUrl | None = None
    events: WebhookEvents | None = None
    name: HookName | None = None
    paused: bool | None = None
    """While it is paused, events wait in the feed, as long as the feed keeps them."""
    add_secret: bool | None = None
    """Make one more secret: every secret signs each delivery."""
    remove_secrets: Annotated[tuple[str, ...], Field(max_length=SECRETS_MAX)] | None = None
    """The ids of secrets that sign no more. One stays."""


class ChangeWebhook(ChangeWebhookBody):
    """`webhook.change`: change a webhook, pause it, or change its secrets."""

    id: WebhookId


class WebhookQuery(InputModel):
    """`webhook.get`, `webhook.remove`, `webhook.test`, `webhook.undelivered`: one webhook."""

    id: WebhookId


class ListWebhooks(InputModel):
    """`webhook.list`: list the webhooks of a tenant. It has no fields."""


class RedeliverEvent(WebhookQuery):
    """`webhook.redeliver`: send an event again whose delivery was given up."""

    delivery_id: DeliveryId


class SecretInfo(Model):
    """A secret without its text."""

    id: str
    created: int


class WebhookInfo(Model):
    """A webhook as callers see it."""

    id: WebhookId
    url: str
    events: tuple[WebhookEvent, ...]
    name: str | None = None
    status: WebhookStatus
    reason: str | None = None
    """Why it fails, or why it is gone."""
    secrets: tuple[SecretInfo, ...]
    by: PrincipalName | None = None
    created: int
    changed: int


class WebhookChanged(Model):
    """The answer of `webhook.create` and `webhook.change`."""

    webhook: WebhookInfo
    secret: str | None = Field(default=None, repr=False)
    """The new secret, if one was made. Nobody can read it again."""


class Webhooks(Model):
    """The answer of `webhook.list`, oldest first."""

    webhooks: tuple[WebhookInfo, ...]


class HookRemoved(Model):
    """The answer of a removal. It is the same if there was no such thing."""

    id: str


class DeliveryOutcome(Model):
    """The answer of `webhook.test` and `webhook.redeliver`: what the receiver said."""

    id: DeliveryId
    delivered: bool
    status: int | None = None
    reason: str | None = None


class UndeliveredEvents(Model):
    """The answer of `webhook.undelivered`: deliveries that were given up, oldest first."""

    deliveries: tuple[UndeliveredEvent, ...]


class PurgeHooks(InputModel):
    """`hook.purge`: remove every webhook and every schedule of a tenant. It has no fields."""


class HooksPurged(Model):
    """The answer of `hook.purge`."""

    webhooks: int
    schedules: int
