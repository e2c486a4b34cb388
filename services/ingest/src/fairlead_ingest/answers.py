"""Turns requests into commands and outcomes into answers: data, or a typed error."""

import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from fairlead_eventlog.errors import CommitTooLarge, LogError
from fairlead_ingest.command_context import CommandContext
from fairlead_schema.errors import (
    InternalFailure,
    InvalidRequest,
    PayloadTooLarge,
    Refused,
    ServiceUnavailable,
)
from fairlead_schema.ids import TenantId
from fairlead_schema.model import InputModel, Model
from fairlead_schema.record import RecordError

log = logging.getLogger(__name__)

Command = TypeVar("Command", bound=InputModel)
Verb: TypeAlias = Callable[[CommandContext, TenantId, Command], Awaitable[Model]]
_TENANT: TypeAdapter[str] = TypeAdapter(TenantId)


async def answer(
    desk: CommandContext,
    tenant: str,
    body: bytes,
    command: type[Command],
    verb: Verb[Command],
) -> bytes:
    """Serve one request; whatever happens, the caller gets an answer."""
    try:
        parsed = parse(command, body)
        return data(await verb(desk, _TENANT.validate_python(tenant), parsed))
    except ValidationError:
        return refusal(InvalidRequest(f"Invalid tenant: {tenant}", kind="Params"))
    except Refused as refused:
        return refusal(refused)
    except CommitTooLarge as error:
        return refusal(PayloadTooLarge(str(error)))
    except LogError as error:
        return refusal(
            ServiceUnavailable(f"The log is unavailable: {error}", service="session.log")
        )
    except RecordError as error:
        return refusal(unreadable(error))
    except Exception:
        ref = f"err_{secrets.token_hex(4)}"
        log.exception("defect", extra={"ref": ref})
        return refusal(InternalFailure("Unexpected server error", ref=ref))


def parse(command: type[Command], body: bytes) -> Command:
    """Read a command. Raises InvalidRequest that names the field."""
    try:
        return command.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or None
        reason = f"{field}: {first['msg']}" if field else first["msg"]
        raise InvalidRequest(reason, kind="Body", field=field) from error


def unreadable(error: RecordError) -> ServiceUnavailable:
    """Why nothing more can be said of a session, or to it."""
    return ServiceUnavailable(f"The session cannot be read: {error}", service="session.log")


def data(model: Model) -> bytes:
    """An answer that holds data."""
    return to_json({"data": model.wire()})


def refusal(refused: Refused) -> bytes:
    """An answer that holds a typed error."""
    return to_json({"error": refused.body.wire()})
