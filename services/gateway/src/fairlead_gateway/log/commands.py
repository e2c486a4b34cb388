"""Commands to ingest: one question, one typed answer, and ids that make a retry exact."""

import hashlib
from typing import Final, TypeVar

from starlette.requests import Request

from fairlead_eventlog.errors import LogUnavailable
from fairlead_gateway.runtime import Runtime
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.session import ExecutionReached, SessionCommand
from fairlead_schema.errors import InvalidRequest, Refused, ServiceUnavailable
from fairlead_schema.ids import MessageId, SessionId, TenantId
from fairlead_schema.model import Model
from fairlead_schema.subjects import Address

Data = TypeVar("Data", bound=Model)

IDEMPOTENCY_KEY: Final = "idempotency-key"
KEY_LENGTH_MAX: Final = 255


async def ask(
    runtime: Runtime, tenant: TenantId, verb: str, command: Model, answer: type[CommandAnswer[Data]]
) -> Data:
    """Send one command to ingest. Raises what ingest refused, Unanswered or Unavailable."""
    body = command.model_dump_json(by_alias=True, exclude_none=True).encode()
    timeout_s = runtime.settings.request_timeout_s
    requests = runtime.medium().requests
    try:
        reply = await requests.request(subjects.api(tenant, verb), body, timeout_s=timeout_s)
    except LogUnavailable as error:
        text = f"Ingest did not answer within {timeout_s} s; repeat the request with the same id"
        raise ServiceUnavailable(text, service="ingest") from error
    answered = answer.model_validate_json(reply)
    if answered.error is not None:
        raise Refused.from_wire(answered.error)
    assert answered.data is not None, f"{verb} is answered with data or an error"
    return answered.data


async def tell(runtime: Runtime, at: Address, verb: str, command: SessionCommand) -> None:
    """Send one command whose success has nothing to tell."""
    await ask(runtime, at.tenant, verb, command, CommandAnswer[ExecutionReached])


def session_id_for(request: Request, tenant: TenantId) -> SessionId | None:
    """The session id that an idempotency key stands for."""
    digest = _digest(request, tenant, "session")
    return None if digest is None else f"ses_{digest}"


def message_id_for(request: Request, tenant: TenantId) -> MessageId | None:
    """The message id that an idempotency key stands for."""
    digest = _digest(request, tenant, "message")
    return None if digest is None else f"msg_{digest}"


def _digest(request: Request, tenant: TenantId, kind: str) -> str | None:
    key = request.headers.get(IDEMPOTENCY_KEY)
    if key is None:
        return None
    if not 0 < len(key) <= KEY_LENGTH_MAX:
        text = f"Idempotency-Key must have 1 to {KEY_LENGTH_MAX} characters"
        raise InvalidRequest(text, kind="Headers", field="Idempotency-Key")
    digest = hashlib.sha256(f"{tenant}\0{kind}\0{key}".encode()).hexdigest()[:32]
    # No seal ends so: a derived id can never be taken for one that Fairlead minted.
    return f"{digest}_"
