"""How services refuse a request when the log fails: one typed refusal per kind of error."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead_eventlog.errors import CommitTooLarge, LogError, MessageTooLarge
from fairlead_schema.errors import PayloadTooLarge, Refused, ServiceUnavailable
from fairlead_schema.record import RecordError

SERVICE: Final = "session.log"
UNREADABLE: Final = "Unreadable"
"""The kind of the refusal for a session that no retry can read."""


def _too_large(error: CommitTooLarge | MessageTooLarge) -> Refused:
    return PayloadTooLarge(str(error))


def _unavailable(error: LogError) -> Refused:
    return ServiceUnavailable(f"The log is unavailable: {error}", service=SERVICE)


def _unreadable(error: RecordError) -> Refused:
    return ServiceUnavailable(
        f"The session cannot be read: {error}", service=SERVICE, kind=UNREADABLE
    )


LOG_REFUSALS: Final[Mapping[type[Exception], Callable[[Any], Refused]]] = {
    CommitTooLarge: _too_large,
    MessageTooLarge: _too_large,
    LogError: _unavailable,
    RecordError: _unreadable,
}
