"""How long a caller is willing to wait."""

import time
from typing import Final

from fairlead_client.errors import NotInTime

_SHORTEST_S: Final = 0.05
_GRACE_S: Final = 1.0


class Deadline:
    """A moment on the monotonic clock; without a time there is none."""

    def __init__(self, what: str, timeout_s: float | None) -> None:
        self._what = what
        self._timeout_s = timeout_s
        self._began = time.monotonic()

    @property
    def is_set(self) -> bool:
        return self._timeout_s is not None

    def left_s(self, at_most: float) -> float:
        """How long to wait now: what is left, at most so much, and never nothing."""
        if self._timeout_s is None:
            return at_most
        left = self._timeout_s - (time.monotonic() - self._began)
        return max(_SHORTEST_S, min(at_most, left))

    def check(self, *, pause_s: float = 0.0, cause: Exception | None = None) -> None:
        """Raise NotInTime if the time is over, or will be after a pause. `cause` is what the caller waits for."""
        timeout_s = self._timeout_s
        if timeout_s is not None and time.monotonic() - self._began + pause_s >= timeout_s:
            raise NotInTime(self._what, timeout_s, cause) from cause

    def silence_s(self, at_most: float) -> float:
        """How long a stream may say nothing before somebody looks at the time."""
        return at_most if self._timeout_s is None else self.left_s(2 * at_most) / 2

    def request_s(self, at_most: float) -> float:
        """How long one request may take. The server may use all that is left, and answer then."""
        return min(self.left_s(at_most) + _GRACE_S, at_most)


UNLIMITED: Final = Deadline("the answer", None)
