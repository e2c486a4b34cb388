"""Provider failures: an HTTP response or an error object becomes one ProviderFailure."""

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
_KIND_BY_STATUS: Mapping[int, FailureKind] = {
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
_OVER_RATE = frozenset({None, 413, 429})
_POLICY = re.compile(
    r"content[_ ](?:policy|filter|management policy)|safety (?:system|policy)|moderation",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient_quota|quota_exceeded|insufficient credits|credit balance is too low",
    re.IGNORECASE,
)
# Gemini refuses a key with 400, and sends the retry delay in the body instead of a header.
_BAD_KEY = re.compile(r"API_KEY_INVALID|API key (?:not valid|expired)", re.IGNORECASE)
# Proxies and wrong addresses answer with a page. Its title is all that a person can use.
_PAGE = re.compile(r"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_TITLE = re.compile(r"<(title|h1)\b[^>]*>([^<]+)</\1", re.IGNORECASE)
_STATUS = re.compile(r"[45]\d\d", re.ASCII)
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_SECRET = re.compile(r"auth|key|token|secret|credential|signature|cookie|passw", re.IGNORECASE)
# A shorter text is no credential: it is the name of a scheme, or it ends a message by chance.
_SECRET_LENGTH_MIN = 8
# An error inside a stream has no status, so its text decides.
_KIND_BY_TEXT: tuple[tuple[str, FailureKind], ...] = (
    (r"rate.?limit|too many requests|throttl|insufficient_quota", "rate-limit"),
    (r"overloaded|service unavailable|at capacity", "overloaded"),
    (r"invalid_api_key|authentication|unauthorized|permission", "auth"),
    (r"timed? ?out|deadline", "timeout"),
    (r"invalid_request|tool_use_failed|not_found", "invalid-request"),
    (r"server_error|internal|api_error|bad gateway", "server-error"),
)


@dataclass(frozen=True, slots=True)
class _ErrorDetails:
    """The fields of an error object, for every shape that providers send."""

    message: str
    code: str = ""
    status: int | None = None
    delay_s: float | None = None


def new_failure(kind: FailureKind, message: str) -> ProviderFailure:
    """A failure of this kind. The kind decides whether a retry can help."""
    return ProviderFailure(kind, message[:MESSAGE_LENGTH_MAX], retryable=kind in _RETRYABLE)


def http_failure(status: int, headers: Mapping[str, str], body: str) -> ProviderFailure:
    """The failure of an HTTP response without a stream. Header names are lower case."""
    error = _read_error(_parse_json(body))
    message = error.message or _plain_text(status, body) or f"HTTP status {status}"
    kind = _classify(status, error, f"{error.message}\n{body}" if error.message else body)
    header_delay_s = retry_after_s(headers)
    return replace(
        new_failure(kind, message),
        retryable=_is_retryable(kind, status, headers, body),
        status=status,
        retry_after_s=error.delay_s if header_delay_s is None else header_delay_s,
        body=redact(body),
    )


def stream_failure(error: object, text: str) -> ProviderFailure:
    """The failure of an error object inside a stream. `text` is the frame that carried it."""
    details = _read_error({"error": error})
    kind = _classify(details.status, details, f"{details.message}\n{text}")
    failure = new_failure(kind, details.message or "The provider reported an error")
    retryable = failure.retryable and _QUOTA.search(text) is None
    return replace(
        failure,
        in_stream=True,
        retryable=retryable,
        status=details.status,
        retry_after_s=details.delay_s,
        body=redact(text),
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the provider asks us to wait. A date counts from the response's `Date` header."""
    millis = _seconds(headers.get("retry-after-ms", ""))
    if millis is not None:
        return millis / 1000
    retry_after = headers.get("retry-after", "")
    seconds = _seconds(retry_after)
    if seconds is not None:
        return seconds
    return _seconds_between(headers.get("date", ""), retry_after)


def redact(body: str) -> str:
    """The body in a form that may be stored: bounded, and without the secret fields of JSON."""
    value = _parse_json(body)
    text = body if value is None else orjson.dumps(_blank_secrets(value)).decode()
    return text[:BODY_LENGTH_MAX]


def is_secret(name: str) -> bool:
    """Whether a header or field with this name holds a secret."""
    return _SECRET.search(name) is not None


def remove_secrets(secrets: Iterable[str], failure: ProviderFailure) -> ProviderFailure:
    """The failure without the secrets that the provider echoed."""
    message, body = failure.message, failure.body
    for secret in _with_parts(secrets):
        message = _without(secret, message)
        body = None if body is None else _without(secret, body)
    return replace(failure, message=message, body=body)


def _with_parts(secrets: Iterable[str]) -> list[str]:
    """The secrets, longest first, and their words: of `Bearer abc` a provider repeats `abc`."""
    whole = set(secrets)
    words = {word for secret in whole for word in secret.split()}
    long_words = {word for word in words if len(word) >= _SECRET_LENGTH_MIN}
    return sorted(whole | long_words, key=len, reverse=True)


def _without(secret: str, text: str) -> str:
    """The text without the secret, and without its start where the text was cut inside it."""
    text = text.replace(secret, REDACTED)
    for length in range(len(secret) - 1, _SECRET_LENGTH_MIN - 1, -1):
        if text.endswith(secret[:length]):
            return text[:-length] + REDACTED
    return text


def _classify(status: int | None, error: _ErrorDetails, text: str) -> FailureKind:
    """The status decides before the text: a 429 that mentions safety is still a rate limit."""
    if status in _OVERFLOWABLE and (
        error.code in overflow.CODES or overflow.mentions_overflow(text)
    ):
        return "context-overflow"
    if status in _OVER_RATE and overflow.exceeds_rate_alone(text):
        return "context-overflow"
    if status in {None, 400} and _BAD_KEY.search(text) is not None:
        return "auth"
    # Anthropic refuses an account without credit with 400.
    if status == 400 and _QUOTA.search(text) is not None:  # noqa: PLR2004 - a bad request
        return "rate-limit"
    if status in {None, 400, 403, 422} and _POLICY.search(text) is not None:
        return "content-filter"
    if status is None:
        return _kind_by_text(error.code) or _kind_by_text(text) or "unknown"
    if status in _KIND_BY_STATUS:
        return _KIND_BY_STATUS[status]
    if status >= 500:  # noqa: PLR2004 - the class of server errors
        return "server-error"
    return "invalid-request" if status >= 400 else "unknown"  # noqa: PLR2004 - client errors


def _plain_text(status: int, body: str) -> str:
    """A body that is no error object. Of a web page the title, or nothing."""
    if _PAGE.match(body) is None:
        return body.strip()[:MESSAGE_LENGTH_MAX]
    title = _TITLE.search(body)
    return (
        "" if title is None else f"HTTP status {status}, a web page: {' '.join(title[2].split())}"
    )


def _kind_by_text(text: str) -> FailureKind | None:
    kinds = (kind for pattern, kind in _KIND_BY_TEXT if re.search(pattern, text, re.IGNORECASE))
    return next(kinds, None)


def _is_retryable(kind: FailureKind, status: int, headers: Mapping[str, str], body: str) -> bool:
    advice = headers.get("x-should-retry", "").lower()
    if advice in {"true", "false"}:
        return advice == "true"
    if status == 402 or _QUOTA.search(body) is not None:  # noqa: PLR2004 - payment required
        return False
    return kind in _RETRYABLE or (status == 409 and kind == "invalid-request")  # noqa: PLR2004


def _read_error(value: object) -> _ErrorDetails:
    if isinstance(value, list) and value:
        value = value[0]
    error = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(error, dict):
        return _ErrorDetails(error if isinstance(error, str) else "")
    code = error.get("code") or error.get("type") or ""
    message = error.get("message")
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    texts = [str(part) for part in (message, raw) if part]
    status = _status(error.get("status_code"), code)
    return _ErrorDetails(": ".join(texts), str(code), status, _delay_s(error.get("details")))


def _delay_s(details: object) -> float | None:
    """The retry delay in an error's details, such as `37s`."""
    items = details if isinstance(details, list) else ()
    delays = (str(item.get("retryDelay", "")) for item in items if isinstance(item, dict))
    matches = (_DELAY.fullmatch(delay) for delay in delays)
    return next((float(match[1]) for match in matches if match), None)


def _status(*candidates: object) -> int | None:
    """The HTTP status among these codes. Some vendors send it as a number or text in `code`."""
    matches = (_STATUS.fullmatch(str(code)) for code in candidates)
    return next((int(match[0]) for match in matches if match), None)


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _seconds_between(now: str, until: str) -> float | None:
    try:
        wait = parsedate_to_datetime(until) - parsedate_to_datetime(now)
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, wait.total_seconds())


def _parse_json(body: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _blank_secrets(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    if depth > DEPTH_MAX:
        return REDACTED
    match value:
        case dict():
            return {name: _blank_field(name, field, depth + 1) for name, field in value.items()}
        case list():
            return [_blank_secrets(item, depth + 1) for item in value]
        case _:
            return value


def _blank_field(name: str, value: Any, depth: int) -> Any:  # noqa: ANN401 - any JSON value
    return REDACTED if isinstance(value, str) and is_secret(name) else _blank_secrets(value, depth)
