"""Waits until the log shows something, a nudge comes, or the runner shuts down."""

import asyncio
from collections.abc import Callable
from typing import Final

from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_session.state.session import Session

LOOK_S_MIN: Final = 0.02
LOOK_S_MAX: Final = 0.5


class LogWaiter:
    """Waits for changes of one session's log, for one drain."""

    def __init__(self, writer: StagedWriter) -> None:
        self._writer = writer
        self.nudged = asyncio.Event()
        self.shutting_down = False

    def shutdown(self) -> None:
        """End every wait, now and from now on."""
        self.shutting_down = True
        self.nudged.set()

    async def until(self, condition: Callable[[Session], bool], *, within_s: float) -> bool:
        """Whether the session came to meet a condition in time. A lost nudge only costs time."""
        loop = asyncio.get_running_loop()
        deadline, look_s = loop.time() + within_s, LOOK_S_MIN
        while not condition(self._writer.durable):
            left_s = deadline - loop.time()
            if left_s <= 0 or self.shutting_down:
                return False
            await self._pause(min(look_s, left_s))
            await self._writer.reload()
            look_s = min(look_s * 2, LOOK_S_MAX)
        return True

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.nudged.wait()
            self.nudged.clear()
        except TimeoutError:
            pass
