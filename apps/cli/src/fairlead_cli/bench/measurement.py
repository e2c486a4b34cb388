"""Times an action, one run after another or many at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, TypeAlias

ROUNDS: Final = 5
"""What is compared is timed in turn, so that both see the same moods of the machine."""

PAUSE_S: Final = 0.3
"""Between two such parts, so that what the first one left to do is not in the second."""

Act: TypeAlias = Callable[[int], Awaitable[object]]
"""The action to time; its argument is the number of the run."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The latencies and the rate of a series of runs."""

    count: int
    p50_ms: float
    p99_ms: float
    per_s: float

    def to_json(self) -> dict[str, float]:
        """The figures as a JSON object."""
        return {
            "count": self.count,
            "p50_ms": round(self.p50_ms, 3),
            "p99_ms": round(self.p99_ms, 3),
            "per_s": round(self.per_s, 1),
        }


async def time_sequential(act: Act, *, count: int, warm: int = 10) -> Timing:
    """Time runs one after another."""
    return await time_concurrent(act, count=count, ways=1, warm=warm)


async def time_concurrent(act: Act, *, count: int, ways: int, warm: int = 10) -> Timing:
    """Time `count` runs, `ways` at a time. The warm-up runs are not counted."""
    for number in range(warm):
        await act(-1 - number)
    durations: list[float] = []
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            start = time.perf_counter()
            await act(number)
            durations.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(ways)))
    return summarise(durations, time.perf_counter() - start)


async def time_in_turn(
    first: Act, second: Act, *, count: int, ways: int = 1
) -> tuple[Sequence[Timing], Sequence[Timing]]:
    """Time two actions in turn, a part of the runs in each round."""
    timings: tuple[list[Timing], list[Timing]] = ([], [])
    for _round in range(ROUNDS):
        for act, done in zip((first, second), timings, strict=True):
            await asyncio.sleep(PAUSE_S)
            done.append(await time_concurrent(act, count=max(1, count // ROUNDS), ways=ways))
    return timings


def merge_rounds(rounds: Sequence[Timing]) -> Timing:
    """The median of the rounds of one action."""
    return Timing(
        count=sum(timing.count for timing in rounds),
        p50_ms=median(timing.p50_ms for timing in rounds),
        p99_ms=median(timing.p99_ms for timing in rounds),
        per_s=median(timing.per_s for timing in rounds),
    )


def summarise(durations: list[float], elapsed_s: float) -> Timing:
    """The timing of runs that took these seconds each."""
    ordered = sorted(durations)
    return Timing(
        count=len(ordered),
        p50_ms=ordered[len(ordered) // 2] * 1000,
        p99_ms=ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1000,
        per_s=len(ordered) / elapsed_s,
    )
