"""What belongs to the request that a task works for: its id and its trace. Both travel as headers.

A task keeps both, as it keeps every context variable. Without tracing nobody sets a trace.
"""

import re
from contextvars import ContextVar
from typing import Final

TRACE_HEADER: Final = "traceparent"
"""The header with the trace of a sender, as W3C Trace Context writes it."""
REQUEST_HEADER: Final = "Fairlead-Request"
"""The header with the id of the HTTP request behind a request between services, for log lines."""

CURRENT_TRACE: Final[ContextVar[str | None]] = ContextVar("fairlead_trace", default=None)
CURRENT_REQUEST: Final[ContextVar[str | None]] = ContextVar("fairlead_request", default=None)

_TRACE: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_TRACE_LENGTH_MAX: Final = 256
_REQUEST: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_SAMPLED: Final = 1


def parse_trace(value: str | None) -> str | None:
    """A trace that a sender names, in the form of version 00; None if it names none that is valid.

    A later version may say more behind the four parts, which count alone.
    """
    if value is None or len(value) > _TRACE_LENGTH_MAX:
        return None
    match = _TRACE.fullmatch(value)
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more) or not int(trace_id, 16) * int(span_id, 16):
        return None
    return f"00-{trace_id}-{span_id}-{int(flags, 16) & _SAMPLED:02x}"


def parse_request_id(value: str | None) -> str | None:
    """An id that a sender gives to its request; None if it cannot stand in log lines as it is."""
    return value if value is not None and _REQUEST.fullmatch(value) else None


def trace_headers() -> dict[str, str] | None:
    """The header of a message that this task leaves for others; None outside any trace."""
    trace = CURRENT_TRACE.get()
    return None if trace is None else {TRACE_HEADER: trace}


def add_request_headers(headers: dict[str, str]) -> None:
    """Add what a request between services carries of the request behind it."""
    trace, request = CURRENT_TRACE.get(), CURRENT_REQUEST.get()
    if trace is not None:
        headers[TRACE_HEADER] = trace
    if request is not None:
        headers[REQUEST_HEADER] = request
