"""Why a provider refused: an HTTP answer or an error object becomes one ProviderFailure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from fairlead_llm import overflow
from fairlead_schema.provider.events import FailureKind, ProviderFailure

BODY_LENGTH_MAX = 16 * 1024
MESSAGE_LENGTH_MAX = 2_000
DEPTH_MAX = 64
REDACTED = "[redacted]"

_RETRYABLE: frozenset[FailureKind] = frozenset(
    {"rate-limit", "overloaded", "network", "timeout", "stream-truncated", "server-error"}
)
_BY_STATUS: Mapping[int, FailureKind] = {
    401: "auth",
    402: "rate-limit",
    403: "auth",
    408: "timeout",
    429: "rate-limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
_OVERFLOWABLE = frozenset({None, 400, 404, 409, 413, 422})
_POLICY = re.compile(
    r"content[_ ](?:policy|filter|management policy)|safety (?:system|policy)|moderation",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|quota_exceeded|insufficient credits", re.IGNORECASE)
# Gemini refuses a key with 400, and says how long to wait in the body instead of a header.
_BAD_KEY = re.compile(r"API_KEY_INVALID|API key (?:not valid|expired)", re.IGNORECASE)
_STATUS = re.compile(r"[45]\d\d", re.ASCII)
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_SECRET = re.compile(r"auth|key|token|secret|credential|signature", re.IGNORECASE)
# An error inside a stream has no status: its own words are all there is.
_BY_WORDS: tuple[tuple[str, FailureKind], ...] = (
    (r"rate.?limit|too many requests|throttl|insufficient_quota", "rate-limit"),
    (r"overloaded|service unavailable|at capacity", "overloaded"),
    (r"invalid_api_key|authentication|unauthorized|permission", "auth"),
    (r"timed? ?out|deadline", "timeout"),
    (r"invalid_request|tool_use_failed|not_found", "invalid-request"),
    (r"server_error|internal|api_error|bad gateway", "server-error"),
)


@dataclass(frozen=True, slots=True)
class _Said:
    """What an error object says, whatever its shape."""

    message: str
    code: str = ""
    status: int | None = None
    delay_s: float | None = None


def failed(kind: FailureKind, message: str) -> ProviderFailure:
    """A failure that we saw ourselves, retryable by its nature."""
    return ProviderFailure(kind, message[:MESSAGE_LENGTH_MAX], retryable=kind in _RETRYABLE)


def refused(status: int, headers: Mapping[str, str], body: str) -> ProviderFailure:
    """An HTTP answer that is no stream. Header names are lower case, or the mapping ignores case."""
    said = _said(_parsed(body))
    message = said.message or body.strip()[:MESSAGE_LENGTH_MAX] or f"HTTP status {status}"
    kind = _kind(status, said, f"{said.message}\n{body}" if said.message else body)
    asked = retry_after_s(headers)
    return replace(
        failed(kind, message),
        retryable=_retryable(kind, status, headers, body),
        status=status,
        retry_after_s=said.delay_s if asked is None else asked,
        body=redacted(body),
    )


def broken(error: object, text: str) -> ProviderFailure:
    """An error object inside a stream; `text` is the frame that carried it."""
    said = _said({"error": error})
    kind = _kind(said.status, said, f"{said.message}\n{text}")
    failure = failed(kind, said.message or "The provider reported an error")
    retryable = failure.retryable and _QUOTA.search(text) is None
    return replace(
        failure,
        in_stream=True,
        retryable=retryable,
        status=said.status,
        retry_after_s=said.delay_s,
        body=redacted(text),
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the provider asks us to wait. A date counts from the answer's own `Date`."""
    millis = _seconds(headers.get("retry-after-ms", ""))
    if millis is not None:
        return millis / 1000
    asked = headers.get("retry-after", "")
    seconds = _seconds(asked)
    return _between(headers.get("date", ""), asked) if seconds is None else seconds


def redacted(body: str) -> str:
    """The body as it may be stored: bounded, its secret fields blanked where it is JSON."""
    parsed = _parsed(body)
    text = body if parsed is None else orjson.dumps(_blanked(parsed)).decode()
    return text[:BODY_LENGTH_MAX]


def secret(name: str) -> bool:
    """Whether a header or a field of this name holds a secret."""
    return _SECRET.search(name) is not None


def without(secrets: Iterable[str], failure: ProviderFailure) -> ProviderFailure:
    """The failure with no trace of the secrets that the provider echoed."""
    message, body = failure.message, failure.body
    for one in secrets:
        message = message.replace(one, REDACTED)
        body = None if body is None else body.replace(one, REDACTED)
    return replace(failure, message=message, body=body)


def _kind(status: int | None, said: _Said, text: str) -> FailureKind:
    """The status decides before any word: a 429 that mentions safety is still a 429."""
    if status in _OVERFLOWABLE and (said.code in overflow.CODES or overflow.said(text)):
        return "context-overflow"
    if status in {None, 400} and _BAD_KEY.search(text) is not None:
        return "auth"
    if status in {None, 400, 403, 422} and _POLICY.search(text) is not None:
        return "content-filter"
    if status is None:
        return _by_words(said.code) or _by_words(text) or "unknown"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:  # noqa: PLR2004 - the class of server errors
        return "server-error"
    return "invalid-request" if status >= 400 else "unknown"  # noqa: PLR2004 - client errors


def _by_words(text: str) -> FailureKind | None:
    said_by = (kind for words, kind in _BY_WORDS if re.search(words, text, re.IGNORECASE))
    return next(said_by, None)


def _retryable(kind: FailureKind, status: int, headers: Mapping[str, str], body: str) -> bool:
    advice = headers.get("x-should-retry", "").lower()
    if advice in {"true", "false"}:
        return advice == "true"
    if status == 402 or _QUOTA.search(body) is not None:  # noqa: PLR2004 - payment required
        return False
    return kind in _RETRYABLE or (status == 409 and kind == "invalid-request")  # noqa: PLR2004


def _said(parsed: object) -> _Said:
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
    if not isinstance(error, dict):
        return _Said(error if isinstance(error, str) else "")
    code = error.get("code") or error.get("type") or ""
    message = error.get("message")
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    spoken = [str(part) for part in (message, raw) if part]
    status = _status(error.get("status_code"), code)
    return _Said(": ".join(spoken), str(code), status, _delay_s(error.get("details")))


def _delay_s(details: object) -> float | None:
    """The wait that an error's details ask for, such as `37s`."""
    held = details if isinstance(details, list) else ()
    asked = (str(one.get("retryDelay", "")) for one in held if isinstance(one, dict))
    found = (_DELAY.fullmatch(delay) for delay in asked)
    return next((float(match[1]) for match in found if match), None)


def _status(*candidates: object) -> int | None:
    """An HTTP status among codes: some vendors send it as the code, as a number or as text."""
    found = (_STATUS.fullmatch(str(code)) for code in candidates)
    return next((int(match[0]) for match in found if match), None)


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _between(now: str, until: str) -> float | None:
    try:
        wait = parsedate_to_datetime(until) - parsedate_to_datetime(now)
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, wait.total_seconds())


def _parsed(body: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _blanked(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    if depth > DEPTH_MAX:
        return REDACTED
    match value:
        case dict():
            return {name: _blanked_field(name, held, depth + 1) for name, held in value.items()}
        case list():
            return [_blanked(held, depth + 1) for held in value]
        case _:
            return value


def _blanked_field(name: str, held: Any, depth: int) -> Any:  # noqa: ANN401 - any JSON value
    return REDACTED if isinstance(held, str) and secret(name) else _blanked(held, depth)
