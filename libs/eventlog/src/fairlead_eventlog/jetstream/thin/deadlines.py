"""The deadlines of all requests of a connection, on one timer of the event loop."""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any, Final, TypeAlias

TICK_S: Final = 0.01
"""A deadline is at most this much late, and never early."""

Waiter: TypeAlias = asyncio.Future[Any]


class Deadlines:
    """Waiters by the tick of their deadline. To add one and to remove one costs the same at any number."""

    def __init__(self, expire: Callable[[Waiter], None]) -> None:
        self._expire = expire
        self._loop = asyncio.get_running_loop()
        self._waiters: dict[int, set[Waiter]] = {}
        self._ticks: list[int] = []
        """The keys of `_waiters`, as a heap."""
        self._armed: float = inf
        self._timer: asyncio.TimerHandle | None = None

    def add(self, waiter: Waiter, timeout_s: float) -> set[Waiter]:
        """Expire a waiter after a time, unless it is discarded from the returned set before."""
        tick = int((self._loop.time() + timeout_s) / TICK_S) + 1
        waiters = self._waiters.get(tick)
        if waiters is None:
            waiters = self._waiters[tick] = set()
            heappush(self._ticks, tick)
            if tick < self._armed:
                self._arm(tick)
        waiters.add(waiter)
        return waiters

    def close(self) -> None:
        """Expire everybody now, and stop the timer."""
        self._disarm()
        self._ticks.clear()
        everybody, self._waiters = self._waiters, {}
        for waiters in everybody.values():
            for waiter in tuple(waiters):
                self._expire(waiter)

    def _arm(self, tick: int) -> None:
        self._disarm()
        self._armed = tick
        self._timer = self._loop.call_at(tick * TICK_S, self._fire)

    def _disarm(self) -> None:
        self._armed = inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        """Expire what is due. Most requests were answered, so the timer skips ticks without waiters."""
        self._disarm()
        now = self._loop.time() / TICK_S
        while self._ticks and (self._ticks[0] <= now or not self._waiters[self._ticks[0]]):
            for waiter in tuple(self._waiters.pop(heappop(self._ticks))):
                self._expire(waiter)
        if self._ticks:
            self._arm(self._ticks[0])
