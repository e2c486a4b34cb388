"""How long workers that do not answer have been silent: watched without a break, by one's own clock.

A worker that is only paused keeps its calls until the deadline of their requests is over. How often
a request was delivered says nothing about that: a second one for the same call may have been put
back any number of times.
"""

import asyncio
from time import monotonic
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import Liveness, PingResult
from fairlead_eventlog.streams import TOOL_DEADLINE_S
from fairlead_schema.ids import WorkerId

PING_TIMEOUT_S: Final = 2.0
EVERY_S: Final = 1.0


class PeerLiveness:
    """The silent workers, as one of the others sees them."""

    def __init__(self, liveness: Liveness) -> None:
        self._liveness = liveness
        self._since: dict[WorkerId, float] = {}
        self._watching: set[asyncio.Task[None]] = set()

    async def ask(self, worker: WorkerId) -> PingResult:
        """Whether a worker lives; one that answers, or is gone, is silent no longer."""
        life = await self._liveness.ping(worker, timeout_s=PING_TIMEOUT_S)
        if life != "silent":
            self._since.pop(worker, None)
        return life

    def over(self, worker: WorkerId) -> bool:
        """Whether a silent worker was so for longer than a request of its own would have waited.

        It fell silent before anybody saw it, so to count from there is never too early.
        """
        since = self._since.get(worker)
        if since is None:
            self._since[worker] = monotonic()
            task = asyncio.create_task(self._watch(worker))
            self._watching.add(task)
            task.add_done_callback(self._watching.discard)
            return False
        return monotonic() - since >= TOOL_DEADLINE_S

    async def _watch(self, worker: WorkerId) -> None:
        """Ask until it answers or the server has given it up, so that no sign of life is missed."""
        try:
            while worker in self._since:
                await asyncio.sleep(EVERY_S)
                await self.ask(worker)
        except LogError:
            # Nobody could be heard: what was counted so far proves nothing.
            self._since.pop(worker, None)
