"""Chaos: everything is killed and paused at random, and every promise holds afterwards.

`make chaos SECONDS=… SEED=… NODES=…` runs it for longer; the seed that failed runs the same weather
again.
"""

import os

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_testing.session_driver import probe_stack
from tests.chaos.chaos_run import ChaosPlan, run_chaos
from tests.chaos.checker import rebuilds_alike, run_verify
from tests.chaos.weather import forecast
from tests.chaos.workload import CONFIG

SECONDS = float(os.environ.get("CHAOS_SECONDS") or 15)
SEED = int(os.environ.get("CHAOS_SEED") or 1)
LOAD = float(os.environ.get("CHAOS_LOAD") or 10)

# The test's own NATS client drops, without closing, each connection that a paused server let it open.
CLIENT_LEAK = (
    "ignore:Exception ignored in. <function StreamWriter:pytest.PytestUnraisableExceptionWarning"
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(SECONDS + 400),
    pytest.mark.filterwarnings(CLIENT_LEAK),
]


async def check_promises(plan: ChaosPlan) -> None:
    """Run the plan on a stack of its own, print what happened, and fail if a promise is broken."""
    for schedule in forecast(plan.seed, plan.seconds, nodes=plan.nodes):
        print(f"seed {plan.seed}: {'; '.join(strike.describe() for strike in schedule)}")  # noqa: T201 - to run it again
    async with probe_stack(more=CONFIG.format(port=free_port()), nats_nodes=plan.nodes) as up:
        report = await run_chaos(up, plan)
        for session, text in report.transcripts.items():
            print(session, text, sep="\n")  # noqa: T201
        print(*report.lines(), sep="\n")  # noqa: T201 - what the run was made of
        assert [str(violation) for violation in report.broken] == []
        code, output = await run_verify(up)
        assert code == 0, output
        assert await rebuilds_alike(up), "the read models equal a fresh rebuild"


async def test_every_promise_holds_whatever_dies() -> None:
    """C-01, C-24, E-20, P-01, P-02: admitted once, promoted once, in order; nothing left behind."""
    await check_promises(ChaosPlan(SEED, SECONDS, load=LOAD))
