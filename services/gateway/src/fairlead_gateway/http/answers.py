"""HTTP answers: JSON bodies, typed refusals, and a log reference for unexpected errors."""

from typing import Final

from pydantic import BaseModel
from starlette.responses import Response

from fairlead_eventlog.errors import LogError, NoResponders
from fairlead_gateway.http.principal_limits import RateLimited
from fairlead_gateway.reads.read_model import ReadsUnavailable
from fairlead_schema.errors import (
    LimitReached,
    Refused,
    ServiceUnavailable,
    Unauthorized,
    WireError,
)
from fairlead_schema.record import RecordError
from fairlead_service.rpc.answers import Answerer

JSON: Final = "application/json"
STALE: Final = "fairlead-stale"
RETRY_AFTER_S: Final = 1

ANSWERER: Final = Answerer(
    {
        NoResponders: lambda _error: ServiceUnavailable(
            "No ingest service answers now", service="ingest"
        ),
        LogError: lambda error: ServiceUnavailable(
            f"The log is not available: {error}", service="nats"
        ),
        RecordError: lambda error: ServiceUnavailable(
            f"The session cannot be read: {error}", service="session.log", kind="Unreadable"
        ),
        ReadsUnavailable: lambda error: ServiceUnavailable(
            f"Reads are not available: {error}", service="postgres"
        ),
    }
)


def answer(body: BaseModel, *, stale: bool = False) -> Response:
    """A success. `stale` says that the read models had not caught up with the log."""
    headers = {STALE: "true"} if stale else None
    return Response(_json(body), media_type=JSON, headers=headers)


def empty_answer(status: int = 204) -> Response:
    """A success without a body."""
    return Response(status_code=status)


def refuse(error: Exception, *, request: str) -> Response:
    """The answer to an exception. An exception that is no refusal is logged as a defect."""
    refusal = ANSWERER.refusal(error, request=request)
    return error_answer(refusal.status, refusal.body, _headers(refusal))


def error_answer(status: int, body: WireError, headers: dict[str, str] | None = None) -> Response:
    """An error body with its status."""
    return Response(_json(body), status_code=status, media_type=JSON, headers=headers)


def wire_error(error: Exception, *, request: str) -> WireError:
    """The error body for a stream that fails after its answer began."""
    return ANSWERER.refusal(error, request=request).body


def _headers(refusal: Refused) -> dict[str, str] | None:
    match refusal:
        case RateLimited():
            return {"retry-after": str(refusal.retry_after_s)}
        case LimitReached():
            return {"retry-after": str(RETRY_AFTER_S)}
        case Unauthorized():
            return {"www-authenticate": 'Bearer realm="fairlead"'}
        case _:
            return None


def _json(body: BaseModel) -> str:
    return body.model_dump_json(by_alias=True, exclude_none=True)
