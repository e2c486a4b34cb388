"""Says when the next drawing is due: at once after a pause, and seldom while much changes."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

FRAME_S: Final = 0.08
"""The pause between two drawings while text streams in. Its bytes come a little less often."""
FRAME_S_MAX: Final = 0.5
REST_FACTOR: Final = 20
"""After a drawing that took long the next one waits so many times as long: text never takes a whole core."""


class FrameClock:
    """A drawing happens in its block. However much happens before, it is drawn once."""

    def __init__(self) -> None:
        self._is_due = False
        self._next_at = 0.0
        self._began = 0.0

    def ask(self, draw_in: Callable[[float], object]) -> None:
        """Call `draw_in` with the time until the next drawing, unless one is due already."""
        if not self._is_due:
            self._is_due = True
            draw_in(max(0.0, self._next_at - time.monotonic()))

    def __enter__(self) -> Self:
        self._is_due = False
        self._began = time.thread_time()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        rest_s = (time.thread_time() - self._began) * REST_FACTOR
        self._next_at = time.monotonic() + min(max(FRAME_S, rest_s), FRAME_S_MAX)
