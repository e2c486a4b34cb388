"""`webhook.…`: register, list, change and remove webhooks. Secrets are shown once, by the answer that made them."""

import secrets
from typing import Final

from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.verbs.hooks.records import (
    add_record,
    change_record,
    read_all,
    read_record,
)
from fairlead_schema.commands.hooks.webhooks import (
    SECRETS_MAX,
    ChangeWebhook,
    CreateWebhook,
    HookRemoved,
    ListWebhooks,
    SecretInfo,
    WebhookChanged,
    WebhookInfo,
    WebhookQuery,
    Webhooks,
    WebhookStatus,
)
from fairlead_schema.errors import InvalidRequest, WebhookNotFound
from fairlead_schema.ids import TenantId, WebhookId
from fairlead_schema.webhooks.record import WebhookRecord, WebhookSecret, WebhookState, is_gone
from fairlead_schema.webhooks.signature import secret_id, secret_text
from fairlead_service import ids
from fairlead_service.audit import audit_command
from fairlead_service.rpc.caller import current_caller
from fairlead_service.rpc.server import TenantParam
from fairlead_service.web import guard

SECRET_BYTES: Final = 32


async def create(
    context: ContextDep, tenant: TenantParam, command: CreateWebhook
) -> WebhookChanged:
    """Register a webhook. It gets the events that come from now on.

    An exact retry gets the same answer, with the secret, because the first answer may be lost.
    """
    _check_url(context, command.url)
    now, secret = ids.now_ms(), command.secret or _mint_secret()
    record = WebhookRecord(
        id=command.id or ids.webhook_id(),
        url=command.url,
        events=tuple(dict.fromkeys(command.events)),
        name=command.name,
        secrets=(WebhookSecret(id=secret_id(secret), secret=secret, created=now),),
        by=current_caller(),
        created=now,
        changed=now,
        after=await context.eventlog.feed_consumers.last_sequence(),
    )
    stored, is_new = await add_record(
        context.eventlog.webhooks,
        tenant,
        record.id,
        record,
        count_max=context.settings.config.hooks.webhooks_max,
        kind="webhooks",
        is_repeat=lambda known: _is_repeat(known, record, secret=command.secret),
    )
    if is_new:
        audit_command("webhook.create", tenant, record.id)
    shown = None if command.secret else stored.secrets[0].secret
    state = WebhookState() if is_new else await _state(context, tenant, stored.id)
    return WebhookChanged(webhook=describe(stored, state), secret=shown)


async def list_(context: ContextDep, tenant: TenantParam, _command: ListWebhooks) -> Webhooks:
    """Every webhook of the tenant, without its secrets."""
    records = await read_all(context.eventlog.webhooks, tenant, WebhookRecord)
    return Webhooks(
        webhooks=tuple(
            [describe(record, await _state(context, tenant, record.id)) for record in records]
        )
    )


async def get(context: ContextDep, tenant: TenantParam, command: WebhookQuery) -> WebhookInfo:
    """One webhook of the tenant."""
    record = await read_record(context.eventlog.webhooks, tenant, command.id, WebhookRecord)
    if record is None:
        raise WebhookNotFound(command.id)
    return describe(record, await _state(context, tenant, record.id))


async def change(
    context: ContextDep, tenant: TenantParam, command: ChangeWebhook
) -> WebhookChanged:
    """Change a webhook. A change of any kind takes back that its receiver was gone."""
    if command.url is not None:
        _check_url(context, command.url)
    secret = _mint_secret() if command.add_secret else None
    now, caller = ids.now_ms(), current_caller()
    record = await change_record(
        context.eventlog.webhooks,
        tenant,
        command.id,
        WebhookRecord,
        lambda known: _apply(known, command, secret, now).model_copy(update={"by": caller}),
    )
    if record is None:
        raise WebhookNotFound(command.id)
    audit_command("webhook.change", tenant, record.id)
    state = await _state(context, tenant, record.id)
    return WebhookChanged(webhook=describe(record, state), secret=secret)


async def remove(context: ContextDep, tenant: TenantParam, command: WebhookQuery) -> HookRemoved:
    """Remove a webhook. Nothing is sent any more, also what waits for another attempt."""
    await context.eventlog.webhooks.remove(tenant, command.id)
    audit_command("webhook.remove", tenant, command.id)
    return HookRemoved(id=command.id)


def describe(record: WebhookRecord, state: WebhookState) -> WebhookInfo:
    """A webhook as callers see it."""
    status: WebhookStatus = "active"
    if record.paused:
        status = "paused"
    elif is_gone(record, state):
        status = "gone"
    elif state.failing_since is not None:
        status = "failing"
    return WebhookInfo(
        id=record.id,
        url=record.url,
        events=record.events,
        name=record.name,
        status=status,
        reason=state.reason if status in {"gone", "failing"} else None,
        secrets=tuple(SecretInfo(id=one.id, created=one.created) for one in record.secrets),
        by=record.by,
        created=record.created,
        changed=record.changed,
    )


def _apply(
    record: WebhookRecord, command: ChangeWebhook, secret: str | None, now: int
) -> WebhookRecord:
    removed = set(command.remove_secrets or ())
    kept = tuple(one for one in record.secrets if one.id not in removed)
    if secret is not None:
        kept += (WebhookSecret(id=secret_id(secret), secret=secret, created=now),)
    if not kept:
        message = "One secret stays: add another one first"
        raise InvalidRequest(message, kind="Body", field="removeSecrets")
    if len(kept) > SECRETS_MAX:
        message = f"A webhook has at most {SECRETS_MAX} secrets: remove one"
        raise InvalidRequest(message, kind="Body", field="addSecret")
    wanted = {"url": command.url, "name": command.name, "paused": command.paused}
    events = None if command.events is None else tuple(dict.fromkeys(command.events))
    present = {
        key: value for key, value in {**wanted, "events": events}.items() if value is not None
    }
    # Two changes in one millisecond are two changes.
    changed = max(now, record.changed + 1)
    return record.model_copy(update={**present, "secrets": kept, "changed": changed})


def _is_repeat(known: WebhookRecord, record: WebhookRecord, *, secret: str | None) -> bool:
    """Whether a record is what the same request made before, and nobody has changed it since."""
    moment = {"created": known.created, "changed": known.created, "after": known.after}
    secrets_ = record.secrets if secret else known.secrets
    own = tuple(one.model_copy(update={"created": known.created}) for one in secrets_)
    return known == record.model_copy(update={**moment, "secrets": own})


def _check_url(context: CommandContext, url: str) -> None:
    """Refuse a URL to which nothing will ever be sent. Names are looked up at each delivery."""
    private = context.settings.config.hooks.private
    try:
        target = guard.parse_target(url)
    except guard.AddressRefused as error:
        raise InvalidRequest(str(error), kind="Body", field="url") from error
    if not private and target.scheme != "https":
        raise InvalidRequest("A webhook must use https://", kind="Body", field="url")
    if not private and guard.is_private_literal(target):
        message = f"{target.host} is a private address, which is not allowed"
        raise InvalidRequest(message, kind="Body", field="url")


async def _state(context: CommandContext, tenant: TenantId, id_: WebhookId) -> WebhookState:
    found = await read_record(context.eventlog.hook_states, tenant, id_, WebhookState)
    return found or WebhookState()


def _mint_secret() -> str:
    return secret_text(secrets.token_bytes(SECRET_BYTES))
