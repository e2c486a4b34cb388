"""Sessions of every kind that live through a fault of the cluster, and the proof that nothing broke."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fairlead_cli.embedded.ports import free_port
from fairlead_testing.session_driver import (
    events_of,
    probe_stack,
    provider_calls,
    say,
    wait_until_settled,
)
from fairlead_testing.stack import Stack
from tests.chaos.chaos_run import ChaosPlan, Report, Weather, run_chaos
from tests.chaos.weather import Damage
from tests.chaos.workload import CONFIG

# Turns that are in mid-stream when the fault comes. Some end while a leader is elected, some later.
TENTHS: Final = (25, 35, 45, 55, 70, 120)


@asynccontextmanager
async def cluster_stack() -> AsyncIterator[Stack]:
    """Three nats-servers, two runners, two tool workers."""
    async with probe_stack(more=CONFIG.format(port=free_port()), nats_nodes=3) as up:
        yield up


async def survive(up: Stack, weather: Weather, *, seed: str, seconds: float = 6.0) -> Report:
    """Live through some weather with every feature in use; nothing is lost, doubled or stranded."""
    plan = ChaosPlan(seed, seconds, nodes=3, load=3.0)
    report = await run_chaos(up, plan, weather=weather)
    assert [str(violation) for violation in report.broken] == [], report.transcripts
    print(*report.lines(), sep="\n")  # noqa: T201 - what the run was made of
    return report


async def survive_in_mid_stream(up: Stack, weather: Weather, *, seed: str) -> None:
    """As `survive`, with turns under way: each is answered by the one request that began it."""
    sessions = await begin_long_turns(up)

    async def strike(up: Stack, damage: Damage) -> None:
        await asyncio.sleep(1.0)
        await weather(up, damage)

    await survive(up, strike, seed=seed)
    for session in sessions:
        log = await wait_until_settled(up, session)
        kinds = ("attempt.dispatched", "step.ended", "execution.recovered", "step.failed")
        assert [len(events_of(log, kind)) for kind in kinds] == [1, 1, 0, 0]
        assert (await provider_calls(up))[session] == 1


async def begin_long_turns(up: Stack) -> list[str]:
    """Sessions whose answers have begun and end after different times."""
    sessions = [await up.session() for _ in TENTHS]
    for session, chunks in zip(sessions, TENTHS, strict=True):
        await say(up, session, f"[[sim: chunks={chunks} delay_ms=100]] take your time")
    for session in sessions:
        await up.until(session, "text.started")
    return sessions
