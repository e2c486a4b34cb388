"""The death of a leader on a real cluster: nothing is lost or done twice, and no turn is asked for again."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from fairlead_testing.cluster_roles import find_leader, wait_until_whole
from fairlead_testing.stack import Stack
from tests.chaos.test_chaos import CLIENT_LEAK
from tests.chaos.weather import Damage
from tests.integration.cluster.survival import cluster_stack, survive_in_mid_stream

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings(CLIENT_LEAK),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    async with cluster_stack() as running:
        yield running


@pytest.mark.parametrize(
    "stream",
    [
        "LOG-0",
        *(
            pytest.param(stream, marks=pytest.mark.slow)
            for stream in ("WAKES", "TOOLS", "PROMPTS", "EVENTS", "KV_fairlead-snapshot", "meta")
        ),
    ],
)
async def test_a_leader_that_dies_costs_no_turn(up: Stack, stream: str) -> None:
    """A1, A2, A3, A7: with tools, asks, compaction, sub-agents, interrupts and deletes under way."""

    async def kill_leader(up: Stack, damage: Damage) -> None:
        node = await find_leader(up.up, stream)
        damage.kinds[f"leader of {stream} killed"] += 1
        up.up.kill("nats", node)
        await wait_until_whole(up.up)

    await survive_in_mid_stream(up, kill_leader, seed=f"leader{stream.replace('_', '')}")
