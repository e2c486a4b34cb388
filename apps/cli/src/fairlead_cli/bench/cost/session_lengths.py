"""Compares turns of sessions of different lengths, a few of one and then a few of the next."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from fairlead_cli.bench.cost.idleness import total_ms, wait_until_idle
from fairlead_cli.bench.load_connection import LoadConnection
from fairlead_cli.bench.measurement import ROUNDS, Timing, summarise
from fairlead_cli.bench.turns import Listener, open_listener
from fairlead_cli.embedded.configuration import SIM
from fairlead_cli.embedded.running_stack import RunningStack

WARM: Final = 5
# The median of fewer turns is that of their accidents.
TURNS_MIN: Final = 10


@dataclass(slots=True)
class SessionTurns:
    """The turns of one session, by round: how long they took, and the processor time of one."""

    timings: list[Timing] = field(default_factory=list)
    services_ms: list[float] = field(default_factory=list)
    """Of all processes but the simulated provider."""
    simulator_ms: list[float] = field(default_factory=list)
    """Of the simulated provider, which reads the whole request as a real one does elsewhere."""


async def compare_sessions(
    stack: RunningStack, sessions: Sequence[str], *, each: int
) -> list[SessionTurns]:
    """Time turns of several sessions in turn. The stack is idle before each part."""
    async with AsyncExitStack() as listeners:
        measured = [
            (
                await listeners.enter_async_context(open_listener(stack.http_with_key, session)),
                SessionTurns(),
            )
            for session in sessions
        ]
        for listener, _turns in measured:
            for number in range(WARM):
                await listener.take_turn(f"warm {number}")
        for _round in range(ROUNDS):
            for listener, turns in measured:
                await wait_until_idle(stack)
                # The gateway may close a connection that was idle for so long.
                async with LoadConnection.open(stack.http_with_key) as listener.poster:
                    await _measure(stack, listener, turns, max(TURNS_MIN, each // ROUNDS))
        return [turns for _listener, turns in measured]


async def _measure(
    stack: RunningStack, listener: Listener, turns: SessionTurns, count: int
) -> None:
    services, everything = total_ms(stack, without=SIM), total_ms(stack)
    start = time.perf_counter()
    durations = [await listener.take_turn(f"turn {number}") for number in range(count)]
    turns.timings.append(summarise(durations, time.perf_counter() - start))
    await wait_until_idle(stack)
    own = total_ms(stack, without=SIM) - services
    turns.services_ms.append(own / count)
    turns.simulator_ms.append((total_ms(stack) - everything - own) / count)


def compare_medians(ones: Sequence[float], others: Sequence[float]) -> float:
    """The median over the rounds of how many times as much the first is."""
    return median(one / other for one, other in zip(ones, others, strict=True))
