"""Our refusals and failures as errors of JSON-RPC, with a sentence that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from acp import RequestError

from fairlead_client import ClientError, Refused
from fairlead_schema.errors import (
    Conflict,
    Forbidden,
    InternalFailure,
    LimitReached,
    ServiceUnavailable,
    SessionNotFound,
    Unauthorized,
)

AUTH_REQUIRED = -32000
NOT_FOUND = -32002
INVALID_PARAMS = -32602
INTERNAL = -32603


def protocol_error(error: Refused | ClientError) -> RequestError:
    """The error that an editor shows."""
    if isinstance(error, ClientError):
        return RequestError(INTERNAL, str(error), {"kind": type(error).__name__})
    data = error.body.model_dump(mode="json", by_alias=True, exclude_none=True)
    match error:
        case Unauthorized() | Forbidden():
            code = AUTH_REQUIRED
        case SessionNotFound():
            code = NOT_FOUND
        case InternalFailure() | ServiceUnavailable() | LimitReached() | Conflict():
            code = INTERNAL
        case _:
            code = INVALID_PARAMS
    return RequestError(code, str(error), data)


@contextmanager
def protocol_errors() -> Iterator[None]:
    """Raise RequestError instead of our own errors."""
    try:
        yield
    except (Refused, ClientError) as error:
        raise protocol_error(error) from error
