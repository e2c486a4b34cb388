"""Reads answers of a gateway: data, typed refusals, and what no gateway would say."""

from typing import Any, Final

import httpx
from pydantic import ValidationError
from pydantic_core import from_json

from fairlead_client.errors import (
    ClientError,
    MalformedAnswer,
    NotFairlead,
    ServerAway,
    ServerUntrusted,
    refusal_of_wire,
)
from fairlead_client.tls_trust import HTTP_AUTHORITY, distrust_of
from fairlead_schema.errors import Refused, WireError
from fairlead_schema.identity.nats_address import redact_url

# A proxy answers these in its own words while the gateway behind it is away.
_PROXY_STATUSES: Final = frozenset({502, 503, 504})
_RETRY_AFTER_S_MAX: Final = 60.0


def refusal_of(response: httpx.Response) -> Refused | ClientError:
    """The error that a response stands for. Its body has been read."""
    url, status, wait_s = str(response.url), response.status_code, _retry_after_s(response)
    try:
        refusal = refusal_of_wire(WireError.model_validate_json(response.content))
    except ValidationError:
        if status in _PROXY_STATUSES:
            cause = f"a proxy answers {status}"
            return ServerAway(url, cause, was_sent=True, retry_after_s=wait_s)
        return not_fairlead(response)
    if isinstance(refusal, Refused):
        refusal.retry_after_s = wait_s
    return refusal


def not_fairlead(response: httpx.Response) -> NotFairlead:
    """The error of an answer that is none of Fairlead's."""
    content_type = response.headers.get("content-type", "")
    target = response.headers.get("location")
    text = f"it points to {target}" if target else response.content.decode(errors="replace")
    return NotFairlead(str(response.url), response.status_code, content_type, text)


def json_of(response: httpx.Response) -> Any:  # noqa: ANN401 - any JSON
    """The JSON of a success. Raises NotFairlead, MalformedAnswer."""
    if not response.content:
        return None
    if not response.headers.get("content-type", "").startswith("application/json"):
        raise not_fairlead(response)
    try:
        return from_json(response.content)
    except ValueError as error:
        raise MalformedAnswer(f"the answer of {response.url}", str(error)) from error


def away(url: str, error: httpx.RequestError) -> ServerAway | ServerUntrusted:
    """The error of a request that nobody answered."""
    untrusted = distrust_of(error, redact_url(url), HTTP_AUTHORITY)
    if untrusted is not None:
        return untrusted
    never_left = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    cause = str(error) or type(error).__name__
    return ServerAway(url, cause, was_sent=not never_left)


def _retry_after_s(response: httpx.Response) -> float | None:
    """How long the server asks to wait; None if it does not say."""
    text = response.headers.get("retry-after", "")
    return min(float(text), _RETRY_AFTER_S_MAX) if text.isdecimal() else None
