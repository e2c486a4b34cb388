"""Patience: repeats what the election of a leader may refuse, until a deadline."""

import asyncio
import random
from time import monotonic
from typing import Final

PAUSE_S_MIN: Final = 0.05
PAUSE_S_MAX: Final = 1.0


class Patience:
    """One span of waiting. Its pauses grow, and differ between processes."""

    def __init__(self, seconds: float, pause_s: float = PAUSE_S_MIN) -> None:
        self._deadline = monotonic() + seconds
        self._pause_s = pause_s

    @property
    def left_s(self) -> float:
        """The seconds until the deadline; 0 after it."""
        return max(0.0, self._deadline - monotonic())

    async def pause(self) -> bool:
        """Wait a little, and longer at the next call. False: the deadline has passed."""
        if self.left_s <= 0:
            return False
        spread = random.uniform(0.5, 1.0)  # noqa: S311 - it spreads retries, it guards nothing
        await asyncio.sleep(min(self._pause_s * spread, self.left_s))
        self._pause_s = min(self._pause_s * 2, PAUSE_S_MAX)
        return True
