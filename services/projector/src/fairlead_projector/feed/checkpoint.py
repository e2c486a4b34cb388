"""How far the checkpoint of the feed may move."""

from collections import deque
from typing import Final

from fairlead_projector.settings import FeedTimings

TIMINGS: Final = FeedTimings()


class FeedCheckpoint:
    """How far the checkpoint may move: only over messages that the server has had time to persist.

    The server persists the feed lazily, so a crash may lose the newest messages. The next publisher
    publishes them again from the checkpoint. The duplicate window of the stream is longer than the lag.
    """

    def __init__(self, position: int, timings: FeedTimings = TIMINGS) -> None:
        self._timings = timings
        self._safe = position
        self._fresh: deque[tuple[float, int]] = deque()
        self._advanced_at = 0.0
        self._advanced = True

    def note(self, position: int, *, now: float) -> None:
        """Everything up to this position is published."""
        self._fresh.append((now, position))
        self._advanced = False

    def due(self, *, now: float, holds: bool = False) -> bool:
        """Whether to advance now. A publisher with new messages advances, so that others see it alive.

        So does one that holds sessions: without it another publisher would try them again.
        """
        if (
            self._advanced and not self._fresh and not holds
        ) or now - self._advanced_at < self._timings.advance_s:
            return False
        self._advanced_at, self._advanced = now, True
        return True

    def safe(self, *, now: float) -> int:
        """The last position that the server has surely persisted."""
        while self._fresh and now - self._fresh[0][0] > self._timings.safe_after_s:
            self._safe = self._fresh.popleft()[1]
        return self._safe
