"""How long a caller is willing to wait."""

import time
from typing import Final

from fairlead_client.errors import NotInTime

_SHORTEST_S: Final = 0.05


class Deadline:
    """A moment on the monotonic clock; without a time there is none."""

    def __init__(self, what: str, timeout_s: float | None) -> None:
        self._what = what
        self._timeout_s = timeout_s
        self._began = time.monotonic()

    def left_s(self, at_most: float) -> float:
        """How long to wait now: what is left, at most so much, and never nothing."""
        if self._timeout_s is None:
            return at_most
        left = self._timeout_s - (time.monotonic() - self._began)
        return max(_SHORTEST_S, min(at_most, left))

    def check(self) -> None:
        """Raise NotInTime if the time is over."""
        timeout_s = self._timeout_s
        if timeout_s is not None and time.monotonic() - self._began >= timeout_s:
            raise NotInTime(self._what, timeout_s)
