"""A cluster of three real servers: what the tests of a replicated log stand on."""

import pytest

from fairlead_testing.nats_cluster import NatsCluster

pytestmark = pytest.mark.integration


async def test_another_node_leads_a_stream_after_its_leader_was_killed(
    cluster: NatsCluster,
) -> None:
    first = await cluster.find_leader("LOG-0")
    first.kill()
    try:
        assert (await cluster.find_leader("LOG-0")).name != first.name
    finally:
        first.start()
        await cluster.wait_until_current("LOG-0")
