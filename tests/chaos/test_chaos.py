"""Chaos: everything is killed and paused at random, and every promise holds afterwards.

`make chaos SECONDS=… SEED=…` runs it for longer; the seed that failed runs the same weather again.
"""

import asyncio
import os

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_schema.record import Recorded
from fairlead_testing.session_driver import events_of, probe_stack
from tests.chaos import weather
from tests.chaos.checker import (
    judge,
    read_effects,
    rebuilds_alike,
    run_verify,
    transcript,
    wait_until_quiet,
)
from tests.chaos.workload import CONFIG, Workload

SECONDS = float(os.environ.get("CHAOS_SECONDS") or 15)
SEED = int(os.environ.get("CHAOS_SEED") or 1)
SESSIONS_PER_SECOND = 10
COUNTED_TYPES = (
    *("attempt.dispatched", "tool.called", "permission.asked", "permission.replied"),
    *("interrupt.requested", "compaction.requested", "compaction.started", "compaction.ended"),
    *("compaction.failed", "attempt.overflowed", "step.ended", "step.failed"),
)

# The test's own NATS client drops, without closing, each connection that a paused server let it open.
CLIENT_LEAK = (
    "ignore:Exception ignored in. <function StreamWriter:pytest.PytestUnraisableExceptionWarning"
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(SECONDS + 400),
    pytest.mark.filterwarnings(CLIENT_LEAK),
]


def count_events(logs: dict[str, list[Recorded]]) -> str:
    return ", ".join(
        f"{sum(len(events_of(log, type_)) for log in logs.values())} {type_}"
        for type_ in COUNTED_TYPES
    )


async def test_every_promise_holds_whatever_dies() -> None:
    """C-01, C-24, E-20, P-01, P-02: admitted once, promoted once, in order; nothing left behind."""
    strikes = weather.forecast(SEED, SECONDS)
    print(f"seed {SEED}: {'; '.join(strike.describe() for strike in strikes)}")  # noqa: T201 - to run it again
    config = CONFIG.format(port=free_port())
    async with probe_stack(more=config) as up:
        work = Workload(up, SEED)
        lives = [
            work.run_session(number, begin_s=number / SESSIONS_PER_SECOND)
            for number in range(int(SECONDS * SESSIONS_PER_SECOND))
        ]

        storm = asyncio.create_task(weather.storm(up, strikes))
        sessions = await asyncio.gather(*lives)
        await storm
        await up.up.wait_ready()
        await work.close(sessions)
        logs = await wait_until_quiet(up, sessions)
        await work.leave()

        faults = judge(logs, work.promised, await read_effects(up))
        for session in {fault.partition(" ")[0].rstrip(":") for fault in faults}:
            print(session, transcript(logs.get(session, [])), sep="\n")  # noqa: T201

        print(f"{len(sessions)} sessions: {count_events(logs)}")  # noqa: T201 - what the run was made of
        assert faults == []
        code, output = await run_verify(up)
        assert code == 0, output
        assert f"{len(sessions)} sessions" in output
        assert await rebuilds_alike(up), "the read models equal a fresh rebuild"
