"""Liveness of the other workers, and since when a silent one has been silent.

A paused worker keeps its calls until the deadline of its requests. The number of deliveries says
nothing about that time, because a second request for the call is put back any number of times.
"""

import asyncio
from time import monotonic
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.process_life import Liveness, PingResult, confirmed_life
from fairlead_eventlog.streams import TOOL_DEADLINE_S
from fairlead_schema.ids import WorkerId

PING_TIMEOUT_S: Final = 2.0
PING_EVERY_S: Final = 1.0


class PeerLiveness:
    """The other workers, as this one sees them."""

    def __init__(
        self,
        own: WorkerId,
        liveness: Liveness,
        *,
        second_look_s: float,
        ping_every_s: float = PING_EVERY_S,
    ) -> None:
        self.own = own
        self._liveness = liveness
        self._second_look_s = second_look_s
        self._ping_every_s = ping_every_s
        self._silent_since: dict[WorkerId, float] = {}
        self._watches: set[asyncio.Task[None]] = set()

    async def ping(self, worker: WorkerId) -> PingResult:
        """Whether a worker lives. A worker that answers, or is gone, is no longer silent.

        The next worker ends a `once` call, so two looks confirm that this one is gone.
        """
        life = await confirmed_life(
            self._liveness, worker, timeout_s=PING_TIMEOUT_S, second_look_s=self._second_look_s
        )
        if life != "silent":
            self._silent_since.pop(worker, None)
        return life

    def is_overdue(self, worker: WorkerId) -> bool:
        """Whether a silent worker has been silent for the whole deadline of a request.

        The first call starts the clock. That is never too early: the worker fell silent before.
        """
        since = self._silent_since.get(worker)
        if since is None:
            self._silent_since[worker] = monotonic()
            task = asyncio.create_task(self._watch(worker))
            self._watches.add(task)
            task.add_done_callback(self._watches.discard)
            return False
        return monotonic() - since >= TOOL_DEADLINE_S

    async def _watch(self, worker: WorkerId) -> None:
        """Ping a silent worker until it answers or is gone, so that no sign of life is missed."""
        try:
            while worker in self._silent_since:
                await asyncio.sleep(self._ping_every_s)
                await self.ping(worker)
        except LogError:
            # This worker could hear nobody, so the silence so far proves nothing.
            self._silent_since.pop(worker, None)
