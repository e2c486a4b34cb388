"""Whether a failed request is repeated, and after which pause."""

import random
import time
from typing import Final

from fairlead_client.errors import ClientError, ServerAway, TokenUnavailable
from fairlead_schema.errors import (
    InternalFailure,
    LimitReached,
    MessageNotFound,
    Refused,
    ServiceUnavailable,
    SessionNotFound,
    Unauthorized,
)

PAUSE_S_FIRST: Final = 0.1
PAUSE_S_MAX: Final = 2.0
_SPREAD: Final = 0.5
_LIMIT_PAUSE_S: Final = 1.0
# These refusals of one service pass only when an operator acts, or mean something else.
_LASTING_KINDS: Final = frozenset({"Unreadable", "Quota"})
_LASTING_SERVICES: Final = frozenset({"session.wait"})


def is_passing(error: Exception, *, is_repeatable: bool) -> bool:
    """Whether the same request may succeed later, and may be sent again without harm."""
    match error:
        case ServerAway():
            return is_repeatable or not error.was_sent
        case LimitReached():
            return error.body.kind not in _LASTING_KINDS
        case ServiceUnavailable():
            return (
                is_repeatable
                and error.body.kind not in _LASTING_KINDS
                and error.body.service not in _LASTING_SERVICES
            )
        case InternalFailure():
            return is_repeatable
        case _:
            return False


def pause_s(failures: int, error: ClientError | Refused) -> float:
    """The pause before the next try. The server's own wish wins; else pauses double, with a spread."""
    if isinstance(error, Refused | ServerAway) and error.retry_after_s is not None:
        return error.retry_after_s
    if isinstance(error, LimitReached):
        return _LIMIT_PAUSE_S
    pause = min(PAUSE_S_FIRST * float(1 << min(failures, 10)), PAUSE_S_MAX)
    return pause * (1 - _SPREAD * random.random())  # noqa: S311 - a spread, no secret


def is_served(verb: str, refusal: Refused) -> bool:
    """Whether a refusal says that an earlier try has done it: what it should remove is gone."""
    match verb:
        case "session.delete":
            return isinstance(refusal, SessionNotFound)
        case "session.cancel":
            return isinstance(refusal, MessageNotFound)
        case _:
            return False


def may_be_served(error: Exception) -> bool:
    """Whether somebody may have served the request that failed."""
    return not isinstance(error, LimitReached) and not (
        isinstance(error, ServerAway) and not error.was_sent
    )


class Interruption:
    """How long a stream is interrupted, and whether somebody still waits for it.

    Before the first answer the patience counts for every failure. After it the stream is opened for ever, and
    the patience counts for refused credentials alone, from their first refusal on.
    """

    def __init__(self) -> None:
        self.failures = 0
        self.was_open = False
        self._failing_since: float | None = None
        self._refused_since: float | None = None

    def end(self) -> None:
        """The stream is open, and something came."""
        self.failures, self.was_open = 0, True
        self._failing_since = self._refused_since = None

    def has_lasted(self, error: ClientError | Refused, patience_s: float | None) -> bool:
        """Note one more failure. True: the patience is over."""
        now, is_refusal = time.monotonic(), isinstance(error, Unauthorized | TokenUnavailable)
        self.failures += 1
        self._failing_since = now if self._failing_since is None else self._failing_since
        if not is_refusal:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        since = self._refused_since if self.was_open else self._failing_since
        return patience_s is not None and since is not None and now - since > patience_s
