"""Seeded bad weather: processes are killed, paused and restarted until the time is over.

Services and nats nodes have a schedule each. A node is struck by its role, such as the leader of a
shard, because an election hurts more than the loss of a follower.
"""

import asyncio
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from fairlead_cli.errors import ProcessFailed
from fairlead_schema.subjects import SHARDS
from fairlead_testing.cluster_roles import META, find_leader, wait_until_whole
from fairlead_testing.stack import Stack

How: TypeAlias = Literal["killed", "paused", "restarted in turn"]

# Whom it strikes, and how often in comparison; servers take longer to come back.
SERVICES: Final = (
    *["runner-0", "runner-1"] * 4,
    *["tools-0", "tools-1"] * 3,
    *["ingest-0"] * 3,
    *["projector-0", "gateway-0"] * 2,
    "postgres-0",
)
ROLES: Final = (
    *[f"leader of LOG-{shard}" for shard in range(SHARDS)],
    *["leader of WAKES", f"leader of {META}"] * 3,
    *["leader of TOOLS", "leader of PROMPTS", "leader of EVENTS"],
    "leader of KV_fairlead-snapshot",
    *["nats-0", "nats-1", "nats-2"],
)
CALM_S: Final = (0.3, 2.0)
PAUSE_S: Final = (0.2, 4.0)
# An election takes up to ten seconds; a cluster that is never whole shows nothing.
NODE_CALM_S: Final = (3.0, 10.0)
NODE_PAUSE_S: Final = (1.0, 10.0)
# All nodes, or all services, one after another, as a deploy does it.
ROLLS: Final = ("nats", "services")
ROLL_AFTER_S: Final = 35.0
DEPLOYED: Final = ("ingest", "projector", "tools", "runner", "gateway")


@dataclass(frozen=True, slots=True)
class Strike:
    """One misfortune: after a calm, to one process or role."""

    calm_s: float
    target: str
    how: How
    pause_s: float = 0.0

    def describe(self) -> str:
        return f"{self.target} {self.how}" + (f" {self.pause_s:.1f} s" if self.pause_s else "")

    @property
    def kind(self) -> str:
        """The strike without its number: what a summary counts."""
        target = "leader of LOG" if self.target.startswith("leader of LOG") else self.target
        return f"{target.rstrip('0123456789').rstrip('-')} {self.how}"


@dataclass(frozen=True, slots=True)
class Struck:
    """What a process suffered, and when by the clock of the log."""

    name: str
    index: int
    how: How
    from_ms: int
    until_ms: int


@dataclass(slots=True)
class Damage:
    """Everything that happened in a storm."""

    kinds: Counter[str] = field(default_factory=Counter)
    struck: list[Struck] = field(default_factory=list)


def forecast(
    seed: int | str, seconds: float, *, nodes: int = 1, calm: float = 1.0
) -> list[list[Strike]]:
    """The schedules of so many seconds; the same seed gives the same ones.

    `calm` makes the services' times between two strikes longer.
    """
    luck = random.Random(seed)  # noqa: S311 - a plan, not a secret
    services = (*SERVICES, "nats-0") if nodes == 1 else SERVICES
    between_s = (CALM_S[0] * calm, CALM_S[1] * calm)
    schedules = [_schedule(luck, seconds, services, between_s, PAUSE_S)]
    if nodes > 1:
        schedules.append(_schedule(luck, seconds, ROLES, NODE_CALM_S, NODE_PAUSE_S))
        order = luck.sample(ROLLS, len(ROLLS))
        rolls = [Strike(ROLL_AFTER_S, target, "restarted in turn") for target in order]
        schedules.append((rolls * int(seconds))[: int(seconds // ROLL_AFTER_S)])
    return schedules


def _schedule(
    luck: random.Random,
    seconds: float,
    targets: tuple[str, ...],
    calm: tuple[float, float],
    pause: tuple[float, float],
) -> list[Strike]:
    strikes: list[Strike] = []
    at_s = 0.0
    while at_s < seconds:
        calm_s, target = luck.uniform(*calm), luck.choice(targets)
        if luck.random() < 0.4:
            strikes.append(Strike(calm_s, target, "paused", luck.uniform(*pause)))
        else:
            strikes.append(Strike(calm_s, target, "killed"))
        at_s += calm_s
    return strikes


async def storm(
    up: Stack, schedules: list[list[Strike]], damage: Damage, *, within_s: float = 600.0
) -> None:
    """Let it happen, as far as it comes within the time. In the end everybody is awake."""
    until = time.monotonic() + within_s
    storms = [asyncio.create_task(_strike_all(up, strikes, damage, until)) for strikes in schedules]
    try:
        await asyncio.gather(*storms)
    finally:
        for one in storms:
            one.cancel()
        for process in up.up.processes:
            with suppress(ProcessLookupError):
                process.kill(signal.SIGCONT)


async def _strike_all(up: Stack, strikes: list[Strike], damage: Damage, until: float) -> None:
    sleepers: set[asyncio.Task[None]] = set()
    for strike in strikes:
        await asyncio.sleep(strike.calm_s)
        if time.monotonic() > until:
            break
        damage.kinds[strike.kind] += 1
        if strike.how == "restarted in turn":
            await _roll(up, strike.target, damage)
            continue
        name, index = await _resolve(up, strike.target)
        if strike.how == "killed":
            _note(damage, name, index, "killed", _now_ms())
            _signal(up, name, index, signal.SIGKILL)
        else:
            pausing = _pause(up, name, index, strike.pause_s, damage)
            sleepers.add(asyncio.create_task(pausing))
        if name == "nats" and len(up.up.nats_nodes) > 1:
            await asyncio.gather(*sleepers)
            # Two nodes away at once is a lost majority: rare, and a wait for everybody.
            with suppress(TimeoutError):
                await wait_until_whole(up.up)
    await asyncio.gather(*sleepers)


async def _resolve(up: Stack, target: str) -> tuple[str, int]:
    if target.startswith("leader of "):
        return "nats", await find_leader(up.up, target.removeprefix("leader of "))
    name, _, index = target.rpartition("-")
    return name, int(index)


async def _pause(up: Stack, name: str, index: int, pause_s: float, damage: Damage) -> None:
    begun = _now_ms()
    _signal(up, name, index, signal.SIGSTOP)
    await asyncio.sleep(pause_s)
    _signal(up, name, index, signal.SIGCONT)
    _note(damage, name, index, "paused", begun)


async def _roll(up: Stack, target: str, damage: Damage) -> None:
    """Restart the processes one after another; the next begins when the last is ready."""
    names = ("nats",) if target == "nats" else DEPLOYED
    for process in [process for process in up.up.processes if process.name in names]:
        begun, pid = _now_ms(), process.pid
        _signal(up, process.name, process.index, signal.SIGTERM)
        with suppress(TimeoutError, ProcessFailed):
            async with asyncio.timeout(60):
                while process.pid in {pid, None}:
                    await asyncio.sleep(0.05)
                await process.wait_ready()
        _note(damage, process.name, process.index, "restarted in turn", begun)


def _note(damage: Damage, name: str, index: int, how: How, begun: int) -> None:
    damage.struck.append(Struck(name, index, how, begun, _now_ms()))


def _now_ms() -> int:
    return int(time.time() * 1000)


def _signal(up: Stack, name: str, index: int, sig: signal.Signals) -> None:
    # It may just be dead: nobody has noticed yet.
    with suppress(ProcessLookupError):
        up.up.kill(name, index, sig)
