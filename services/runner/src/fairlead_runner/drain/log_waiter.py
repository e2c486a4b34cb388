"""Waits until the log shows something, a nudge comes, or the runner shuts down."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.state.session import Session

T = TypeVar("T")

LOOK_S_MIN: Final = 0.02
LOOK_S_MAX: Final = 0.5


class LogWaiter:
    """Waits for changes of one session's log, for one drain."""

    def __init__(self, writer: StagedWriter) -> None:
        self._writer = writer
        self.nudged = asyncio.Event()
        self._shutdown = asyncio.Event()

    @property
    def shutting_down(self) -> bool:
        return self._shutdown.is_set()

    def shutdown(self) -> None:
        """End every wait, now and from now on."""
        self._shutdown.set()
        self.nudged.set()

    async def unless_shutdown(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of some work. None: the runner shuts down, and the work was cancelled."""
        working, leaving = asyncio.create_task(work), asyncio.create_task(self._shutdown.wait())
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else None
        finally:
            await cancel_and_wait(working, leaving)

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
