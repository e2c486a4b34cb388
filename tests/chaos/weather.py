"""Seeded bad weather: processes are killed, and paused and continued, until the time is over."""

import asyncio
import random
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fairlead_testing.stack import Stack

# Whom it strikes, and how often in comparison; servers take longer to come back.
VICTIMS: Final = (
    *[("runner", 0), ("runner", 1)] * 4,
    *[("tools", 0), ("tools", 1)] * 3,
    *[("ingest", 0)] * 3,
    *[("projector", 0), ("gateway", 0)] * 2,
    ("nats", 0),
    ("postgres", 0),
)
CALM_S: Final = (0.3, 2.0)
PAUSE_S: Final = (0.2, 4.0)


@dataclass(frozen=True, slots=True)
class Strike:
    """One misfortune: after a calm, to one process; killed if it is not paused for a while."""

    calm_s: float
    name: str
    index: int
    pause_s: float | None

    def describe(self) -> str:
        how = "killed" if self.pause_s is None else f"paused for {self.pause_s:.1f} s"
        return f"{self.name}-{self.index} {how}"


def forecast(seed: int, seconds: float) -> list[Strike]:
    """The strikes of so many seconds; the same seed gives the same ones."""
    luck = random.Random(seed)  # noqa: S311 - a plan, not a secret
    strikes: list[Strike] = []
    at_s = 0.0
    while at_s < seconds:
        calm_s = luck.uniform(*CALM_S)
        name, index = luck.choice(VICTIMS)
        pause_s = luck.uniform(*PAUSE_S) if luck.random() < 0.4 else None
        strikes.append(Strike(calm_s, name, index, pause_s))
        at_s += calm_s
    return strikes


async def storm(up: Stack, strikes: list[Strike]) -> None:
    """Let it happen. In the end everybody is awake."""
    sleepers: set[asyncio.Task[None]] = set()
    try:
        for strike in strikes:
            await asyncio.sleep(strike.calm_s)
            if strike.pause_s is None:
                _signal(up, strike, signal.SIGKILL)
            else:
                sleepers.add(asyncio.create_task(_pause(up, strike, strike.pause_s)))
        await asyncio.gather(*sleepers)
    finally:
        for process in up.up.processes:
            with suppress(ProcessLookupError):
                process.kill(signal.SIGCONT)


async def _pause(up: Stack, strike: Strike, pause_s: float) -> None:
    _signal(up, strike, signal.SIGSTOP)
    await asyncio.sleep(pause_s)
    _signal(up, strike, signal.SIGCONT)


def _signal(up: Stack, strike: Strike, sig: signal.Signals) -> None:
    # It may just be dead: nobody has noticed yet.
    with suppress(ProcessLookupError):
        up.up.kill(strike.name, strike.index, sig)
