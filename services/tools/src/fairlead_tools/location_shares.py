"""Shares the slots of one worker between locations: each has at most so many calls at once."""

import time
from collections import Counter, deque
from contextlib import suppress
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import Job
from fairlead_schema.location import LocationRef

# How soon a request comes again whose location is crowded: each time later, and at once if it is recalled.
CROWDED_S: Final = 1.0
CROWDED_S_MAX: Final = 30.0
RECALL_MARGIN_S: Final = 0.5
WAITING_MAX: Final = 50_000


class LocationShares:
    """The calls that run at each location, and the requests that wait for one of them to end."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._running: Counter[LocationRef | None] = Counter()
        self._waiting: dict[LocationRef | None, deque[tuple[float, Job]]] = {}
        self._count = 0

    def enter(self, location: LocationRef | None) -> bool:
        """Count a call as running, unless its location runs as many as it may."""
        if self._running[location] >= self._limit:
            return False
        self._running[location] += 1
        return True

    def put_back(self, location: LocationRef | None, job: Job) -> float:
        """Note a request that has to wait; the answer is how long it waits if nobody recalls it."""
        delay_s = min(CROWDED_S * 2.0 ** min(job.deliveries - 1, 10), CROWDED_S_MAX)
        if self._count < WAITING_MAX:
            until = time.monotonic() + delay_s - RECALL_MARGIN_S
            self._waiting.setdefault(location, deque()).append((until, job))
            self._count += 1
        return delay_s

    async def leave(self, location: LocationRef | None) -> None:
        """Count a call as ended, and recall the oldest request that waits for it."""
        self._running[location] -= 1
        if not self._running[location]:
            del self._running[location]
        job = self._next(location)
        if job is not None:
            with suppress(LogError):  # The request comes by itself later.
                await job.retry_later(0.0)

    def _next(self, location: LocationRef | None) -> Job | None:
        waiting, now = self._waiting.get(location, deque()), time.monotonic()
        found: Job | None = None
        while waiting and found is None:
            until, job = waiting.popleft()
            self._count -= 1
            # The queue delivers a later one by itself, perhaps to another worker.
            found = job if until > now else None
        if not waiting:
            self._waiting.pop(location, None)
        return found
