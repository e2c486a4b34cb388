"""Waits until a stack has nothing left to do, so that the work of one measurement is not in the next."""

import asyncio
import time
from typing import Final

from fairlead_cli.bench.cost.process_usage import read_usage
from fairlead_cli.embedded.running_stack import RunningStack

LOOK_S: Final = 0.3
# A stack at rest uses about a twentieth of a core.
IDLE_SHARE: Final = 0.12
WAIT_S: Final = 30.0


async def wait_until_idle(stack: RunningStack) -> None:
    """Wait for rows and feed messages of what was written, and for the writes of the disk behind them."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        before, began = total_ms(stack), time.monotonic()
        await asyncio.sleep(LOOK_S)
        if total_ms(stack) - before < IDLE_SHARE * (time.monotonic() - began) * 1000:
            return


def total_ms(stack: RunningStack, *, without: str | None = None) -> float:
    """The processor time of all processes of a stack so far; `without` leaves one service out."""
    pids = [
        process.pid
        for process in stack.processes
        if process.pid is not None and process.name != without
    ]
    return read_usage({"all": pids})["all"].cpu_ms
