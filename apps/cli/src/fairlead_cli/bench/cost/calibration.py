"""A fixed loop: how much processor time the same work takes on this machine right now."""

import asyncio
import time
from contextlib import suppress
from typing import Final, Self

# The time of the loop on the machine of the first figures. All figures are scaled to it.
REFERENCE_MS: Final = 1.6
_ROUNDS: Final = 50_000
_EVERY_S: Final = 0.25


class Calibration:
    """Runs the loop a few times a second while a load is measured. `factor` scales its figures."""

    def __init__(self) -> None:
        self._times_ms: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._times_ms.append(loop_ms())
        self._task = asyncio.create_task(self._repeat())
        return self

    async def __aexit__(self, *_exception: object) -> None:
        assert self._task is not None, "entered before"
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    @property
    def mean_ms(self) -> float:
        return sum(self._times_ms) / len(self._times_ms)

    @property
    def factor(self) -> float:
        return REFERENCE_MS / self.mean_ms

    async def _repeat(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            self._times_ms.append(loop_ms())


def loop_ms() -> float:
    """The processor time of one run of the loop."""
    start = time.thread_time_ns()
    total = 0
    for number in range(_ROUNDS):
        total += number & 7
    return (time.thread_time_ns() - start) / 1e6
