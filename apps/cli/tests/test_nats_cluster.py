"""The embedded nats-servers: how many there are, and what each is told about the others."""

from pathlib import Path

import pytest

from fairlead_cli.embedded.nats_cluster import plan_cluster
from fairlead_cli.embedded.ports import free_port
from fairlead_cli.embedded.state_directory import StateDirectory, prepare_state
from fairlead_cli.errors import StateUnusable, UsageError
from fairlead_eventlog.errors import TooFewServers
from fairlead_eventlog.provision import provision
from fairlead_testing.nats import Server


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return prepare_state(tmp_path / "state")


def test_each_node_has_its_own_store_and_knows_all_routes(state: StateDirectory) -> None:
    cluster = plan_cluster(state, 3)
    configs = [node.config() for node in cluster.nodes]
    routes = {config.partition("routes: ")[2] for config in configs}

    assert len(set(configs)) == 3
    assert len(routes) == 1
    assert routes.pop().count("nats://node:") == 3
    for index, config in enumerate(configs):
        assert f"server_name: fairlead-{index}" in config
        assert f"node-{index}/jetstream" in config
        assert "sync_interval: always" in config
        assert 'include "../keys/auth.conf"' in config
    assert len({*cluster.urls, *cluster.monitors}) == 6
    assert cluster.url.split(",") == list(cluster.urls)


def test_the_nodes_keep_their_password_and_do_not_show_it(state: StateDirectory) -> None:
    first, second = plan_cluster(state, 3).nodes[0].routes, plan_cluster(state, 3).nodes[1].routes

    assert first is not None
    assert second is not None
    assert first.password == second.password
    assert first.password not in repr(first)
    assert (state.nats / "route-password").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("count", [0, 2, 4])
def test_a_number_of_nodes_without_a_good_majority_is_refused(
    state: StateDirectory, count: int
) -> None:
    with pytest.raises(UsageError, match=f"--nats-nodes {count}: choose 1 or 3"):
        plan_cluster(state, count)


@pytest.mark.parametrize(("made_with", "stores"), [(1, [""]), (3, ["node-0", "node-1", "node-2"])])
def test_a_state_keeps_the_number_of_nodes_it_was_made_with(
    state: StateDirectory, made_with: int, stores: list[str]
) -> None:
    for store in stores:
        (state.nats / store / "jetstream").mkdir(parents=True)

    assert len(plan_cluster(state, made_with).nodes) == made_with
    with pytest.raises(StateUnusable, match=f"start it with --nats-nodes {made_with}, or choose"):
        plan_cluster(state, 4 - made_with)


@pytest.mark.integration
async def test_copies_of_a_server_without_a_cluster_are_refused_with_a_cure(tmp_path: Path) -> None:
    server = Server(tmp_path, free_port())
    server.start()
    try:
        with pytest.raises(TooFewServers, match=r"belongs to no cluster .* choose --replicas 1"):
            await provision(server.address, replicas=3)
    finally:
        server.kill()
