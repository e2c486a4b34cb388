"""Nodes of a real cluster that stand still, lose their disk or restart, while sessions go on."""

import asyncio
import shutil
import signal
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from fairlead_cli.embedded.nats import NODE_PREFIX, STORE
from fairlead_eventlog.replication import read_copies
from fairlead_testing.cluster_roles import find_leader, wait_until_whole
from fairlead_testing.stack import Stack
from tests.chaos.test_chaos import CLIENT_LEAK
from tests.chaos.weather import Damage, Strike, storm
from tests.integration.cluster.survival import cluster_stack, survive, survive_in_mid_stream

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings(CLIENT_LEAK),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    async with cluster_stack() as running:
        yield running


async def test_a_leader_that_stands_still_for_ten_seconds_loses_nothing(up: Stack) -> None:
    """Its clients stand still with it; whatever another runner took over is asked for once more."""

    async def pause(up: Stack, damage: Damage) -> None:
        await storm(up, [[Strike(1.0, "leader of LOG-0", "paused", 10.0)]], damage)

    await survive(up, pause, seed="pause", seconds=12)


async def test_two_nodes_that_stand_still_stop_the_log_and_lose_nothing(up: Stack) -> None:
    """Without a majority nothing is acknowledged; afterwards everything goes on."""

    async def pause_both(up: Stack, damage: Damage) -> None:
        strikes = [Strike(1.0, node, "paused", 8.0) for node in ("nats-0", "nats-1")]
        await storm(up, [[strike] for strike in strikes], damage)

    await survive(up, pause_both, seed="majority", seconds=12)


async def test_a_node_that_lost_its_disk_gets_every_stream_again(up: Stack) -> None:
    """The others have a majority: they lose nothing, and the node copies what they have."""

    async def wipe(up: Stack, damage: Damage) -> None:
        node = await find_leader(up.up, "LOG-1")
        store = up.up.state.nats / f"{NODE_PREFIX}{node}" / STORE
        # It stands still while its store is deleted, so that it writes nothing more to it.
        up.up.kill("nats", node, signal.SIGSTOP)
        await asyncio.to_thread(shutil.rmtree, store)
        damage.kinds["node wiped"] += 1
        up.up.kill("nats", node, signal.SIGKILL)
        await wait_until_whole(up.up)

    await survive_in_mid_stream(up, wipe, seed="wipe")
    copies = await read_copies(up.up.operator)

    assert {found.copies for found in copies} == {3}
    assert [found for found in copies if found.leader is None or found.behind] == []


async def test_a_rolling_restart_of_everything_costs_no_turn(up: Stack) -> None:
    """All nodes, then all services, one after another, as a deploy does it."""

    async def roll(up: Stack, damage: Damage) -> None:
        rolls = [Strike(1.0, target, "restarted in turn") for target in ("nats", "services")]
        await storm(up, [rolls], damage)

    begun = time.monotonic()
    report = await survive(up, roll, seed="roll", seconds=30)

    assert report.kinds == {"nats restarted in turn": 1, "services restarted in turn": 1}
    assert time.monotonic() - begun < 300
