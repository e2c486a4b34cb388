"""Rates and lag from the live events of all sessions, over the last seconds."""

from collections import deque
from typing import Any, Final, NamedTuple

WINDOW_S: Final = 10.0
# A promotion has the time of its admission, which may be long ago.
_OTHER_TIMES: Final = frozenset({"prompted"})


class EventRates(NamedTuple):
    """What happens in a second, and how old an event is when it is shown."""

    events: float = 0.0
    tokens: float = 0.0
    lag_ms: float | None = None


class RateMeter:
    """Counts events. Time is an argument."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, float | None]] = deque()

    def take(
        self, type_: str, data: dict[str, Any], *, is_live: bool, now_s: float, clock_ms: float
    ) -> None:
        """Count one event or fragment that came at `now_s`, when the wall clock was `clock_ms`."""
        tokens = data.get("tokens") if type_ == "step.ended" else None
        output = tokens.get("output", 0) + tokens.get("reasoning", 0) if tokens else 0
        made = data.get("timestamp")
        is_timed = not is_live and isinstance(made, int | float) and type_ not in _OTHER_TIMES
        lag = max(clock_ms - made, 0.0) if is_timed and made is not None else None
        self._seen.append((now_s, output, lag))

    def rates(self, now_s: float) -> EventRates:
        """The rates of the last seconds. The lag is the median, so one slow event does not show."""
        while self._seen and self._seen[0][0] <= now_s - WINDOW_S:
            self._seen.popleft()
        lags = sorted(lag for _at, _tokens, lag in self._seen if lag is not None)
        return EventRates(
            len(self._seen) / WINDOW_S,
            sum(tokens for _at, tokens, _lag in self._seen) / WINDOW_S,
            lags[len(lags) // 2] if lags else None,
        )
