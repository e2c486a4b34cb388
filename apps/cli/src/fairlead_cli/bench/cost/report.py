"""Measures the cost of each load on one stack, and puts it into a table and into JSON."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from fairlead_cli.bench.cost.calibration import Calibration
from fairlead_cli.bench.cost.loads import (
    SESSIONS,
    Act,
    LoadTarget,
    open_admissions,
    open_listened_turns,
    open_text_turns,
    open_tool_turns,
)
from fairlead_cli.bench.cost.process_usage import ProcessorUsage, difference, read_usage
from fairlead_cli.bench.cost.server_counts import ServerCounts, count
from fairlead_cli.embedded.running_stack import RunningStack

LISTENERS: Final = 50
WARM_UNITS: Final = 2 * SESSIONS
# The projector and the feed finish behind the load.
SETTLE_S: Final = 1.0

OpenLoad: TypeAlias = Callable[[LoadTarget, AsyncExitStack], Awaitable[Act]]


@dataclass(frozen=True, slots=True)
class LoadCost:
    """What one unit of a load costs."""

    load: str
    units: int
    per_s: float
    factor: float
    usage: dict[str, ProcessorUsage]
    counts: ServerCounts

    def cpu_ms(self, process: str) -> float:
        """The normalised processor time of one unit in one process."""
        return self.usage[process].cpu_ms * self.factor / self.units

    @property
    def total_cpu_ms(self) -> float:
        """The normalised processor time of one unit over all services and servers."""
        return sum(self.cpu_ms(process) for process in self.usage)

    def each(self, counted: str) -> float:
        """How often something was counted in one unit."""
        return float(getattr(self.counts, counted)) / self.units

    def to_json(self) -> dict[str, Any]:
        """The cost as a JSON object."""
        return {
            "load": self.load,
            "units": self.units,
            "per_s": round(self.per_s, 1),
            "factor": round(self.factor, 3),
            "cpu_ms": {name: round(self.cpu_ms(name), 3) for name in self.usage},
            "cpu_ms_total": round(self.total_cpu_ms, 3),
            "switches": {
                name: round(usage.switches / self.units, 1) for name, usage in self.usage.items()
            },
            "counts": {name: round(self.each(name), 2) for name in ServerCounts._fields},
        }


def loads() -> dict[str, OpenLoad]:
    """Every load by its name."""
    return {
        "text turn": open_text_turns,
        "tool turn": open_tool_turns,
        "admission": open_admissions,
        "turn with 1 listener": partial(open_listened_turns, listeners=1),
        f"turn with {LISTENERS} listeners": partial(open_listened_turns, listeners=LISTENERS),
    }


async def measure(
    stack: RunningStack, target: LoadTarget, name: str, open_load: OpenLoad, *, units: int
) -> LoadCost:
    """Warm the load up, then measure that many units of it."""
    async with AsyncExitStack() as exits:
        act = await open_load(target, exits)
        ways = 1 if "listener" in name else SESSIONS
        await _run(act, range(-WARM_UNITS, 0), ways)
        await asyncio.sleep(SETTLE_S)
        pids = _pids(stack)
        counts, before = await count(stack.monitor, stack.postgres_admin), read_usage(pids)
        loop = asyncio.get_running_loop()
        async with Calibration() as calibration:
            start = loop.time()
            await _run(act, range(units), ways)
            seconds = loop.time() - start
        await asyncio.sleep(SETTLE_S)
        usage = difference(before, read_usage(pids))
        counted = (await count(stack.monitor, stack.postgres_admin)).minus(counts)
    return LoadCost(name, units, units / seconds, calibration.factor, usage, counted)


async def _run(act: Act, numbers: range, ways: int) -> None:
    remaining = iter(numbers)

    async def work() -> None:
        for number in remaining:
            await act(number)

    await asyncio.gather(*(work() for _ in range(ways)))


def _pids(stack: RunningStack) -> dict[str, list[int]]:
    """The processes of the stack by name, without the simulated provider."""
    pids: dict[str, list[int]] = {}
    for process in stack.processes:
        if process.name != "sim" and process.pid is not None:
            pids.setdefault(process.name, []).append(process.pid)
    return pids
