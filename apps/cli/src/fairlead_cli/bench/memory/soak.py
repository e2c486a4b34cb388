"""Runs turns in ever new sessions, and looks at the memory of each process now and then."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead_cli.bench.admissions import create_sessions
from fairlead_cli.bench.cost.loads import SESSIONS, LoadTarget, text_prompt, tool_prompt
from fairlead_cli.bench.cost.run import open_target
from fairlead_cli.bench.memory.resident import read_memory
from fairlead_cli.bench.turns import TURN_S, open_listener
from fairlead_cli.embedded.running_stack import RunningStack

TURNS_IN_SESSION: Final = 10
TOOL_TURN_EVERY: Final = 5
SAMPLES: Final = 20
# Caches and pools fill up in the first part, which does not count.
WARM_SHARE: Final = 0.2
SETTLE_S: Final = 2.0
CACHING: Final = ("ingest", "runner", "projector", "tools")


@dataclass(frozen=True, slots=True)
class MemorySample:
    """The memory of all processes after so many turns, in MiB."""

    turns: int
    rss: dict[str, float]
    pss: float | None
    """Of all services together."""


@dataclass(slots=True)
class MemorySoak:
    """Every sample of one run, the first before any turn."""

    turns: int
    samples: list[MemorySample] = field(default_factory=list)

    def growth(self, process: str) -> float:
        """The memory of a process at the end, against that after the warm-up."""
        warm = next(sample for sample in self.samples if sample.turns >= WARM_SHARE * self.turns)
        return self.samples[-1].rss[process] / warm.rss[process]

    def to_json(self) -> dict[str, Any]:
        """The run as a JSON object."""
        return {
            "turns": self.turns,
            "samples": [
                {"turns": sample.turns, "rss": sample.rss, "pss": sample.pss}
                for sample in self.samples
            ],
            "growth": {name: round(self.growth(name), 3) for name in self.samples[-1].rss},
        }


async def run_soak(
    *,
    turns: int,
    solo: bool,
    progress: Callable[[MemorySample], None],
    cache_sessions_max: int | None = None,
) -> MemorySoak:
    """Start a stack, run that many turns, and take about twenty samples on the way.

    With small caches, which are soon full, whatever still grows is no cache.
    """
    soak = MemorySoak(turns)
    config = "" if cache_sessions_max is None else limit_caches(cache_sessions_max)
    async with open_target(solo=solo, config=config) as (stack, target):
        step = max(1, turns // SAMPLES)
        done = 0
        while True:
            await asyncio.sleep(SETTLE_S)
            soak.samples.append(take_sample(stack, done))
            progress(soak.samples[-1])
            if done >= turns:
                return soak
            following = range(done, min(done + step, turns))
            numbers = iter(following)
            await asyncio.gather(*(_run_sessions(target, numbers) for _ in range(SESSIONS)))
            done = following.stop


def limit_caches(sessions_max: int) -> str:
    """The configuration of services that keep so many sessions in memory."""
    limits = [f"{service}.cache_sessions_max = {sessions_max}" for service in CACHING]
    return "\n".join((*limits, f"ingest.followed_sessions_max = {sessions_max}"))


def take_sample(stack: RunningStack, turns: int) -> MemorySample:
    """The memory of every process of a stack now."""
    memory = {
        process.label: read_memory(process.pid)
        for process in stack.processes
        if process.pid is not None
    }
    parts = [memory[process.label].pss for process in stack.processes if _is_service(process.name)]
    known = [part for part in parts if part is not None]
    return MemorySample(
        turns,
        {label: round(found.rss, 1) for label, found in memory.items()},
        round(sum(known), 1) if len(known) == len(parts) else None,
    )


def _is_service(name: str) -> bool:
    return name not in {"nats", "postgres", "sim"}


async def _run_sessions(target: LoadTarget, numbers: Iterator[int]) -> None:
    """Take turns in one session after another, until the numbers are used up."""
    number = next(numbers, None)
    while number is not None:
        (session,) = await create_sessions(target.eventlog, 1)
        async with open_listener(target.url, session) as listener:
            for _ in range(TURNS_IN_SESSION):
                if number is None:
                    return
                with_tool = number % TOOL_TURN_EVERY == 0
                await listener.take_turn((tool_prompt if with_tool else text_prompt)(number))
                if with_tool:
                    async with asyncio.timeout(TURN_S):
                        await listener.turn_ends.get()
                number = next(numbers, None)
