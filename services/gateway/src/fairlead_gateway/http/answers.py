"""How the gateway answers: JSON without absent keys, typed refusals, a reference for defects."""

import logging
import secrets
from typing import Final

from pydantic import BaseModel
from starlette.responses import Response

from fairlead_eventlog.errors import LogError, NoResponders
from fairlead_gateway.reads.read_model import ReadsUnavailable
from fairlead_schema.errors import (
    InternalFailure,
    LimitReached,
    Refused,
    ServiceUnavailable,
    WireError,
)
from fairlead_schema.record import RecordError

log = logging.getLogger(__name__)

JSON: Final = "application/json"
STALE: Final = "fairlead-stale"
RETRY_AFTER_S: Final = 1


def answer(body: BaseModel, *, stale: bool = False) -> Response:
    """A success. `stale` tells that the read models had not caught up."""
    headers = {STALE: "true"} if stale else None
    return Response(_json(body), media_type=JSON, headers=headers)


def done(status: int = 204) -> Response:
    """A success that has nothing to tell."""
    return Response(status_code=status)


def refuse(error: Exception) -> Response:
    """The answer to anything that was raised; what nobody declared becomes a defect."""
    refused = error if isinstance(error, Refused) else _away(error) or _defect(error)
    headers = {"retry-after": str(RETRY_AFTER_S)} if isinstance(refused, LimitReached) else None
    return failure(refused.status, refused.body, headers)


def failure(status: int, body: WireError, headers: dict[str, str] | None = None) -> Response:
    """An error body with its status."""
    return Response(_json(body), status_code=status, media_type=JSON, headers=headers)


def cause(error: Exception) -> WireError:
    """What to tell the reader of a stream that fails after it began."""
    return (error if isinstance(error, Refused) else _away(error) or _defect(error)).body


def _away(error: Exception) -> Refused | None:
    match error:
        case NoResponders():
            return ServiceUnavailable("No ingest service answers now", service="ingest")
        case LogError():
            return ServiceUnavailable(f"The log is not available: {error}", service="nats")
        case RecordError():
            return ServiceUnavailable(f"The session cannot be read: {error}", service="session.log")
        case ReadsUnavailable():
            return ServiceUnavailable(f"Reads are not available: {error}", service="postgres")
        case _:
            return None


def _defect(error: Exception) -> Refused:
    ref = f"err_{secrets.token_hex(4)}"
    log.error("defect", extra={"ref": ref}, exc_info=error)
    return InternalFailure(f"Something went wrong on our side; it is logged as {ref}", ref=ref)


def _json(body: BaseModel) -> str:
    return body.model_dump_json(by_alias=True, exclude_none=True)
