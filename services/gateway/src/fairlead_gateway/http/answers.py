"""How the gateway answers: JSON without absent keys, typed refusals, a reference for defects."""

from typing import Final

from pydantic import BaseModel
from starlette.responses import Response

from fairlead_eventlog.errors import LogError, NoResponders
from fairlead_gateway.reads.read_model import ReadsUnavailable
from fairlead_schema.errors import LimitReached, ServiceUnavailable, WireError
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
            f"The session cannot be read: {error}", service="session.log"
        ),
        ReadsUnavailable: lambda error: ServiceUnavailable(
            f"Reads are not available: {error}", service="postgres"
        ),
    }
)


def answer(body: BaseModel, *, stale: bool = False) -> Response:
    """A success. `stale` tells that the read models had not caught up."""
    headers = {STALE: "true"} if stale else None
    return Response(_json(body), media_type=JSON, headers=headers)


def done(status: int = 204) -> Response:
    """A success that has nothing to tell."""
    return Response(status_code=status)


def refuse(error: Exception) -> Response:
    """The answer to an error. An error that nobody declared is answered with a reference."""
    refused = ANSWERER.refusal(error)
    headers = {"retry-after": str(RETRY_AFTER_S)} if isinstance(refused, LimitReached) else None
    return failure(refused.status, refused.body, headers)


def failure(status: int, body: WireError, headers: dict[str, str] | None = None) -> Response:
    """An error body with its status."""
    return Response(_json(body), status_code=status, media_type=JSON, headers=headers)


def cause(error: Exception) -> WireError:
    """The error that ends a stream which fails after it began."""
    return ANSWERER.refusal(error).body


def _json(body: BaseModel) -> str:
    return body.model_dump_json(by_alias=True, exclude_none=True)
