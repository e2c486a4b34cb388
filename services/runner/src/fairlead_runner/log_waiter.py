"""Waiting without blocking: for the log to show something, for a nudge, for a departure."""

import asyncio
from collections.abc import Callable
from typing import Final

from fairlead_runner.staged_writer import StagedWriter
from fairlead_session.state.session import Session

LOOK_S_MIN: Final = 0.02
LOOK_S_MAX: Final = 0.5


class LogWaiter:
    """One drain's waiting."""

    def __init__(self, writer: StagedWriter) -> None:
        self._writer = writer
        self.nudged = asyncio.Event()
        self.leaving = False

    def shutdown(self) -> None:
        """Wait for nothing any more."""
        self.leaving = True
        self.nudged.set()

    async def until(self, holds: Callable[[Session], bool], *, within_s: float) -> bool:
        """Whether it came to hold in time. A lost nudge costs a little time, nothing else."""
        loop = asyncio.get_running_loop()
        deadline, look_s = loop.time() + within_s, LOOK_S_MIN
        while not holds(self._writer.durable):
            left = deadline - loop.time()
            if left <= 0 or self.leaving:
                return False
            await self._pause(min(look_s, left))
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
