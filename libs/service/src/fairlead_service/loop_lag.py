"""Measures how late the event loop runs what is due: whatever blocks the loop shows here."""

import asyncio
from contextlib import suppress
from typing import Final

from prometheus_client import Gauge

LOOP_LAG: Final = Gauge(
    "fairlead_loop_lag_seconds", "The longest delay of the event loop in the last seconds."
)
INTERVAL_S: Final = 0.5
WINDOW: Final = 20
"""So many measurements count: the gauge still shows a delay when the next scrape comes."""


async def measure_loop_lag(*, interval_s: float = INTERVAL_S) -> None:
    """Measure for ever."""
    loop = asyncio.get_running_loop()
    delays = [0.0] * WINDOW
    number = 0
    while True:
        due = loop.time() + interval_s
        await asyncio.sleep(interval_s)
        delays[number % WINDOW] = max(0.0, loop.time() - due)
        number += 1
        LOOP_LAG.set(max(delays))


class LoopLag:
    """Measures for the length of a block."""

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(measure_loop_lag(), name="loop lag")

    async def __aexit__(self, *_error: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
