"""Webhooks: register, list, change and remove them, try them, and send again what was given up."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer, empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, validate
from fairlead_gateway.log.commands import send_command
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.hooks.webhooks import (
    ChangeWebhook,
    ChangeWebhookBody,
    CreateWebhook,
    DeliveryOutcome,
    HookRemoved,
    HooksPurged,
    ListWebhooks,
    PurgeHooks,
    RedeliverEvent,
    UndeliveredEvents,
    WebhookChanged,
    WebhookInfo,
    WebhookQuery,
    Webhooks,
)
from fairlead_schema.errors import (
    Conflict,
    DeliveryNotFound,
    LimitReached,
    ServiceUnavailable,
    WebhookNotFound,
)
from fairlead_schema.model import Model
from fairlead_schema.webhooks.record import UndeliveredEvent


class WebhookChangedAnswer(Model):
    data: WebhookChanged


class WebhookListAnswer(Model):
    data: tuple[WebhookInfo, ...]


class WebhookAnswer(Model):
    data: WebhookInfo


class DeliveryAnswer(Model):
    data: DeliveryOutcome


class UndeliveredAnswer(Model):
    data: tuple[UndeliveredEvent, ...]


class HooksPurgedAnswer(Model):
    data: HooksPurged


def _query(request: ApiRequest[EmptyInput, EmptyInput]) -> WebhookQuery:
    return validate(WebhookQuery, {"id": request.http.path_params["webhookID"]}, "Params")


async def _create(request: ApiRequest[EmptyInput, CreateWebhook]) -> Response:
    made = CommandAnswer[WebhookChanged]
    changed = await send_command(request, "webhook.create", request.body, made)
    return answer(WebhookChangedAnswer(data=changed))


async def _list(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    found = await send_command(request, "webhook.list", ListWebhooks(), CommandAnswer[Webhooks])
    return answer(WebhookListAnswer(data=found.webhooks))


async def _read(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    found = await send_command(request, "webhook.get", _query(request), CommandAnswer[WebhookInfo])
    return answer(WebhookAnswer(data=found))


async def _change(request: ApiRequest[EmptyInput, ChangeWebhookBody]) -> Response:
    given = request.body.model_dump(by_alias=True, exclude_unset=True)
    fields = {**given, "id": request.http.path_params["webhookID"]}
    command = validate(ChangeWebhook, fields, "Params")
    made = CommandAnswer[WebhookChanged]
    changed = await send_command(request, "webhook.change", command, made)
    return answer(WebhookChangedAnswer(data=changed))


async def _remove(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    query = _query(request)
    await send_command(request, "webhook.remove", query, CommandAnswer[HookRemoved])
    return empty_answer()


async def _send_trial(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    made = CommandAnswer[DeliveryOutcome]
    outcome = await send_command(request, "webhook.test", _query(request), made)
    return answer(DeliveryAnswer(data=outcome))


async def _list_undelivered(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    made = CommandAnswer[UndeliveredEvents]
    found = await send_command(request, "webhook.undelivered", _query(request), made)
    return answer(UndeliveredAnswer(data=found.deliveries))


async def _redeliver(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    params = request.http.path_params
    fields = {"id": params["webhookID"], "deliveryID": params["deliveryID"]}
    command = validate(RedeliverEvent, fields, "Params")
    made = CommandAnswer[DeliveryOutcome]
    outcome = await send_command(request, "webhook.redeliver", command, made)
    return answer(DeliveryAnswer(data=outcome))


async def _purge(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    purged = await send_command(request, "hook.purge", PurgeHooks(), CommandAnswer[HooksPurged])
    return answer(HooksPurgedAnswer(data=purged))


CREATE = Operation(
    id="webhook.create",
    method="POST",
    path="/api/webhook",
    scope="webhook:manage",
    summary="Register a webhook. The answer alone shows its secret.",
    respond=_create,
    body=CreateWebhook,
    answer=WebhookChangedAnswer,
    errors=(Conflict, LimitReached, ServiceUnavailable),
)

LIST = Operation(
    id="webhook.list",
    method="GET",
    path="/api/webhook",
    scope="webhook:manage",
    summary="The webhooks of the tenant, oldest first, without their secrets.",
    respond=_list,
    answer=WebhookListAnswer,
    errors=(ServiceUnavailable,),
)

READ = Operation(
    id="webhook.get",
    method="GET",
    path="/api/webhook/{webhookID}",
    scope="webhook:manage",
    summary="One webhook, and how it fares.",
    respond=_read,
    answer=WebhookAnswer,
    errors=(WebhookNotFound, ServiceUnavailable),
)

CHANGE = Operation(
    id="webhook.change",
    method="PATCH",
    path="/api/webhook/{webhookID}",
    scope="webhook:manage",
    summary="Change or pause a webhook, or change its secrets.",
    respond=_change,
    body=ChangeWebhookBody,
    answer=WebhookChangedAnswer,
    errors=(WebhookNotFound, ServiceUnavailable),
)

REMOVE = Operation(
    id="webhook.remove",
    method="DELETE",
    path="/api/webhook/{webhookID}",
    scope="webhook:manage",
    summary="Remove a webhook; an unknown one is already removed.",
    respond=_remove,
    answer=None,
    status=204,
    errors=(ServiceUnavailable,),
)

TEST = Operation(
    id="webhook.test",
    method="POST",
    path="/api/webhook/{webhookID}/test",
    scope="webhook:manage",
    summary="Post a trial now, and say what the receiver answered.",
    respond=_send_trial,
    answer=DeliveryAnswer,
    errors=(WebhookNotFound, ServiceUnavailable),
)

UNDELIVERED = Operation(
    id="webhook.undelivered",
    method="GET",
    path="/api/webhook/{webhookID}/undelivered",
    scope="webhook:manage",
    summary="The deliveries that were given up, with their reasons.",
    respond=_list_undelivered,
    answer=UndeliveredAnswer,
    errors=(WebhookNotFound, ServiceUnavailable),
)

REDELIVER = Operation(
    id="webhook.redeliver",
    method="POST",
    path="/api/webhook/{webhookID}/undelivered/{deliveryID}",
    scope="webhook:manage",
    summary="Send an event again whose delivery was given up.",
    respond=_redeliver,
    answer=DeliveryAnswer,
    errors=(WebhookNotFound, DeliveryNotFound, ServiceUnavailable),
)

PURGE = Operation(
    id="hook.purge",
    method="DELETE",
    path="/api/hook",
    scope="tenant:admin",
    summary="Remove every webhook and every schedule of the tenant.",
    respond=_purge,
    answer=HooksPurgedAnswer,
    errors=(ServiceUnavailable,),
)
