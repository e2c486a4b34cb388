"""Chaos on three nats-servers: leaders die and stand still too, and every promise holds afterwards."""

import os

import pytest

from tests.chaos.chaos_run import ChaosPlan
from tests.chaos.test_chaos import CLIENT_LEAK, SEED, check_promises

SECONDS = float(os.environ.get("CHAOS_SECONDS") or 20)
LOAD = float(os.environ.get("CHAOS_LOAD") or 4)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(SECONDS + 500),
    pytest.mark.filterwarnings(CLIENT_LEAK),
]


@pytest.mark.slow
async def test_every_promise_holds_whichever_leader_dies() -> None:
    """A1, A2, A3, A7: no election loses, doubles or strands anything, and none costs a turn."""
    await check_promises(ChaosPlan(SEED, SECONDS, nodes=3, load=LOAD))
