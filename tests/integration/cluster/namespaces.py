"""Network namespaces for the nodes of a cluster: they speak over links that a test may cut.

Everything is inside the network and mount namespace of the calling process, which must be its own.
"""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

from fairlead_cli.embedded import nats, nats_cluster
from fairlead_cli.embedded.child_process import ProcessSpec
from fairlead_cli.embedded.nats import NatsServer, RouteAccess
from fairlead_cli.embedded.nats_cluster import NatsCluster
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_schema.tools.pool_rules import ONE_POOL, PoolRules

NODES: Final = 3
ENTER: Final = "/usr/bin/nsenter"
RULES_FROM: Final = 100


def lay_links() -> None:
    """One namespace for each node, with a link to the calling one, which forwards between them."""
    run("ip", "link", "set", "lo", "up")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    # Names of namespaces are files: they vanish with the mount namespace.
    Path("/run/netns").mkdir(exist_ok=True)
    run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
    for node in range(NODES):
        name = f"node{node}"
        run("ip", "netns", "add", name)
        run("ip", "link", "add", f"v{node}", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "addr", "add", f"10.77.{node}.1/24", "dev", f"v{node}")
        run("ip", "link", "set", f"v{node}", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "addr", "add", f"{host(node)}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        run("ip", "-n", name, "route", "add", "default", "via", f"10.77.{node}.1")


def host(node: int) -> str:
    return f"10.77.{node}.2"


def cut(first: int, second: int) -> None:
    """Drop every packet between two nodes. Clients still reach both."""
    for node, other in ((first, second), (second, first)):
        run("ip", "rule", "add", *_rule(node, other))


def mend(first: int, second: int) -> None:
    for node, other in ((first, second), (second, first)):
        run("ip", "rule", "del", *_rule(node, other))


def _rule(node: int, other: int) -> tuple[str, ...]:
    preference = str(RULES_FROM + NODES * node + other)
    return ("pref", preference, "iif", f"v{node}", "to", f"10.77.{other}.0/24", "blackhole")


def move_nodes() -> None:
    """From now on the stacks of this process start each node in its namespace."""
    prepare, plan = nats.prepare, nats_cluster.plan_cluster

    async def prepare_inside(server: NatsServer) -> ProcessSpec:
        spec = await prepare(server)
        return replace(spec, argv=(ENTER, f"--net=/run/netns/node{server.index}", *spec.argv))

    def plan_inside(
        state: StateDirectory, count: int, *, relaxed: bool = False, pools: PoolRules = ONE_POOL
    ) -> NatsCluster:
        planned = plan(state, count, relaxed=relaxed, pools=pools)
        return NatsCluster(tuple(_move(node) for node in planned.nodes))

    nats.prepare = prepare_inside
    nats_cluster.plan_cluster = plan_inside


def _move(node: NatsServer) -> NatsServer:
    assert node.routes is not None, "only a node of a cluster has links"
    listeners = tuple(
        f"{host(index)}:{address.rpartition(':')[2]}"
        for index, address in enumerate(node.routes.addresses)
    )
    routes = RouteAccess(listeners, node.routes.password)
    return replace(node, host=host(node.index), routes=routes)


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
