"""Sends commands to ingest, and derives ids from idempotency keys so that a retry is exact."""

import hashlib
import json
from typing import Any, TypeVar

from starlette.requests import Request

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_gateway.http.caller import require_scope
from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.log.repeated_request import send_until_answered
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import ShellReceipt
from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.errors import InvalidRequest, Refused, ServiceUnavailable
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.identity.verbs import KEYED, VERBS
from fairlead_schema.ids import MessageId, PermissionId, SessionId, TenantId
from fairlead_schema.model import Model
from fairlead_schema.prompt import Receipt
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import KEY_HEADER, KEY_LENGTH_MAX, RESTRICTIONS_HEADER, Address

Data = TypeVar("Data", bound=Model)


async def send_command(
    request: ApiRequest[Any, Any], verb: str, command: Model, answer: type[CommandAnswer[Data]]
) -> Data:
    """Send one command to ingest on behalf of the caller.

    Raises Forbidden if the verb's scope is missing, the refusal of ingest, or ServiceUnavailable.
    """
    body = command.model_dump_json(by_alias=True, exclude_none=True).encode()
    return await send_body(request, verb, body, answer)


async def send_body(
    request: ApiRequest[Any, Any], verb: str, body: bytes, answer: type[CommandAnswer[Data]]
) -> Data:
    """Send the bytes of a command to ingest, as `send_command` does."""
    principal, runtime = request.principal, request.runtime
    scope = VERBS[verb].scope
    assert scope is not None, f"{verb} is for services alone"
    require_scope(principal, scope)
    timeout_s, requests = _timeout_s(request, verb), runtime.nats().requests

    key = _key_of(request.http) if verb in KEYED else None
    headers = _headers(principal.restrictions, key)

    async def send(subject: str, timeout_s: float) -> bytes:
        return await requests.request(
            subject, body, timeout_s=timeout_s, by=principal.name, headers=headers
        )

    try:
        reply = await send_until_answered(
            send, principal.tenant, verb, timeout_s=timeout_s, keyed=key is not None
        )
    except NoResponders as error:
        service = VERBS[verb].service
        raise ServiceUnavailable(f"No {service} service answers now", service=service) from error
    except LogUnavailable as error:
        text = f"Ingest did not answer within {timeout_s} s; repeat the request with the same id"
        raise ServiceUnavailable(text, service=VERBS[verb].service) from error
    result = answer.model_validate_json(reply)
    if result.error is not None:
        raise Refused.from_wire(result.error)
    assert result.data is not None, f"{verb} is answered with data or an error"
    _note_write(request, verb, result.data)
    return result.data


def _timeout_s(request: ApiRequest[Any, Any], verb: str) -> float:
    """How long to wait. The hooks service itself waits for receivers."""
    settings = request.runtime.settings
    if VERBS[verb].service == "hooks":
        return settings.request_timeout_s + settings.hook_timeout_s
    return settings.request_timeout_s


def _note_write(request: ApiRequest[Any, Any], verb: str, data: Model) -> None:
    """Remember what the caller wrote, so that its next list shows it."""
    name, tenant, own_writes = request.principal.name, request.tenant, request.runtime.own_writes
    match data:
        case SessionInfo():
            own_writes.note(name, Address(tenant, data.id), 1)
        case Receipt() | ShellReceipt():
            own_writes.note(name, Address(tenant, data.session_id), data.admitted_seq)
        case SeqReached():
            seq = None if verb == "session.delete" else data.seq
            own_writes.note(name, Address(tenant, data.session_id), seq)
        case _:
            pass


async def send_session_command(
    request: ApiRequest[Any, Any], verb: str, command: SessionCommand
) -> None:
    """Send one command whose success has no data."""
    await send_command(request, verb, command, CommandAnswer[SeqReached])


def session_id_from_key(request: Request, tenant: TenantId) -> SessionId | None:
    """The session id that follows from the idempotency key; None without a key."""
    digest = _digest(request, tenant, "session")
    return None if digest is None else f"ses_{digest}"


def message_id_from_key(request: Request, tenant: TenantId) -> MessageId | None:
    """The message id that follows from the idempotency key; None without a key."""
    digest = _digest(request, tenant, "message")
    return None if digest is None else f"msg_{digest}"


def permission_id_from_key(request: Request, tenant: TenantId) -> PermissionId | None:
    """The id of a permission request that follows from the idempotency key; None without a key."""
    digest = _digest(request, tenant, "permission")
    return None if digest is None else f"per_{digest}"


def _key_of(request: Request) -> str | None:
    """The idempotency key of a request. Raises InvalidRequest."""
    key = request.headers.get(KEY_HEADER)
    if key is not None and not (0 < len(key) <= KEY_LENGTH_MAX and key.isprintable()):
        text = f"{KEY_HEADER} must have 1 to {KEY_LENGTH_MAX} printable characters"
        raise InvalidRequest(text, kind="Headers", field=KEY_HEADER)
    return key


def _headers(restrictions: Restrictions | None, key: str | None) -> dict[str, str]:
    headers = {}
    if restrictions is not None:
        headers[RESTRICTIONS_HEADER] = json.dumps(restrictions.wire())
    if key is not None:
        headers[KEY_HEADER] = key
    return headers


def _digest(request: Request, tenant: TenantId, kind: str) -> str | None:
    key = _key_of(request)
    if key is None:
        return None
    digest = hashlib.sha256(f"{tenant}\0{kind}\0{key}".encode()).hexdigest()[:32]
    # No seal ends in an underscore, so nobody takes a derived id for a minted one.
    return f"{digest}_"
