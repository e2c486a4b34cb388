"""Chaos: everything is killed and paused at random, and every promise holds afterwards.

`make chaos SECONDS=… SEED=…` runs it for longer; the seed that failed runs the same weather again.
"""

import asyncio
import os

import pytest

from fairlead_testing.driving import probed
from tests.chaos import weather
from tests.chaos.checker import command_verifies, effects, judge, quiet, rebuilt_alike, transcript
from tests.chaos.workload import Workload

SECONDS = float(os.environ.get("CHAOS_SECONDS") or 15)
SEED = int(os.environ.get("CHAOS_SEED") or 1)
SESSIONS_PER_SECOND = 14

# The test's own NATS client drops, without closing, each connection that a paused server let it open.
CLIENT_LEAK = (
    "ignore:Exception ignored in. <function StreamWriter:pytest.PytestUnraisableExceptionWarning"
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(SECONDS + 400),
    pytest.mark.filterwarnings(CLIENT_LEAK),
]


async def test_every_promise_holds_whatever_dies() -> None:
    """C-01, C-24, E-20, P-01, P-02: admitted once, promoted once, in order; nothing left behind."""
    strikes = weather.forecast(SEED, SECONDS)
    print(f"seed {SEED}: {'; '.join(strike.told() for strike in strikes)}")  # noqa: T201 - to run it again
    async with probed() as up:
        work = Workload(up, SEED)
        lives = [
            work.live(number, begin_s=number / SESSIONS_PER_SECOND)
            for number in range(int(SECONDS * SESSIONS_PER_SECOND))
        ]

        storm = asyncio.create_task(weather.storm(up, strikes))
        sessions = await asyncio.gather(*lives)
        await storm
        await up.up.ready()
        await asyncio.gather(*(work.close(session) for session in sessions))
        logs = await quiet(up, sessions)

        faults = judge(logs, work.promised, await effects(up))
        for session in {fault.partition(" ")[0].rstrip(":") for fault in faults}:
            print(session, transcript(logs.get(session, [])), sep="\n")  # noqa: T201

        assert faults == []
        code, told = await command_verifies(up)
        assert code == 0, told
        assert f"{len(sessions)} sessions" in told
        assert await rebuilt_alike(up), "the read models equal a fresh rebuild"
