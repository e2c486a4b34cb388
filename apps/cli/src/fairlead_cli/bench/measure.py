"""Timing: one after another, or many at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

Act: TypeAlias = Callable[[int], Awaitable[object]]
"""One thing to time, given its number."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What a series of acts took."""

    count: int
    p50_ms: float
    p99_ms: float
    per_s: float

    def told(self) -> dict[str, float]:
        """The figures as JSON."""
        return {
            "count": self.count,
            "p50_ms": round(self.p50_ms, 3),
            "p99_ms": round(self.p99_ms, 3),
            "per_s": round(self.per_s, 1),
        }


async def sequential(act: Act, *, count: int, warm: int = 10) -> Timing:
    """One after another."""
    return await concurrent(act, count=count, ways=1, warm=warm)


async def concurrent(act: Act, *, count: int, ways: int, warm: int = 10) -> Timing:
    """`ways` at a time, `count` in all. The warm-up is not counted."""
    for number in range(warm):
        await act(-1 - number)
    taken: list[float] = []
    numbers = iter(range(count))

    async def go() -> None:
        for number in numbers:
            began = time.perf_counter()
            await act(number)
            taken.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(go() for _ in range(ways)))
    return timing(taken, time.perf_counter() - began)


def timing(taken: list[float], elapsed_s: float) -> Timing:
    """Figures of durations in seconds."""
    ordered = sorted(taken)
    return Timing(
        count=len(ordered),
        p50_ms=ordered[len(ordered) // 2] * 1000,
        p99_ms=ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1000,
        per_s=len(ordered) / elapsed_s,
    )
