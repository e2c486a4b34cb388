"""The embedded nats-servers of a stack: one server, or a cluster whose nodes copy every stream."""

import asyncio
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import httpx

from fairlead_cli.embedded import nats
from fairlead_cli.embedded.local_http import local_client
from fairlead_cli.embedded.nats import NatsServer, RouteAccess
from fairlead_cli.embedded.nats_auth import key_directory
from fairlead_cli.embedded.ports import LOOPBACK, free_ports
from fairlead_cli.embedded.private_files import make_private_directory, write_private
from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.embedded.supervisor import POLL_S, SupervisedProcess
from fairlead_cli.errors import StateUnusable, UsageError
from fairlead_eventlog.condition.retention import Retention
from fairlead_eventlog.errors import LogError, LogUnavailable
from fairlead_eventlog.provision import provision
from fairlead_schema.tools.pool_rules import ONE_POOL, PoolRules
from fairlead_service.config.configuration import Config

NODE_COUNTS: Final = (1, 3)
"""Two nodes have no majority without each other."""
PORTS_PER_NODE: Final = 3
PROBE_TIMEOUT_S: Final = 2.0
ELECTION_S_MAX: Final = 60.0
RESTORE_S_MAX: Final = 5.0


@dataclass(frozen=True, slots=True)
class NatsCluster:
    """The nats-servers of one stack."""

    nodes: tuple[NatsServer, ...]

    @property
    def state(self) -> StateDirectory:
        return self.nodes[0].state

    @property
    def url(self) -> str:
        """The addresses of all nodes, as clients of Fairlead take them."""
        return ",".join(self.urls)

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(node.url for node in self.nodes)

    @property
    def monitors(self) -> tuple[str, ...]:
        return tuple(node.monitor_url for node in self.nodes)

    def processes(self, config: Config) -> list[SupervisedProcess]:
        """One supervised process for each node."""
        return [self._process(index, node, config) for index, node in enumerate(self.nodes)]

    def _process(self, index: int, node: NatsServer, config: Config) -> SupervisedProcess:
        async def restore() -> None:
            """Streams in memory die with the only server. When it dies again, the next start tries."""
            if node.routes is None:
                with suppress(LogError):
                    await self.provision(config, within_s=RESTORE_S_MAX)

        return SupervisedProcess(
            "nats",
            index,
            lambda: nats.prepare(node),
            lambda: why_node_not_ready(node),
            restore=restore,
        )

    async def provision(self, config: Config, *, within_s: float = ELECTION_S_MAX) -> None:
        """Create what is missing. When it returns, every stream and consumer has a leader.

        Raises LogError, if the servers elected none in time.
        """
        address = key_directory(self.state).service_address(self.url, "provision")
        deadline = time.monotonic() + within_s
        while True:
            try:
                await provision(
                    address,
                    replicas=len(self.nodes),
                    wake_deadline_s=config.runner.wake_deadline_s,
                    pools=config.pools.names,
                    retention=Retention(**config.streams.model_dump()),
                )
            except LogUnavailable:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(POLL_S)
            else:
                return


def plan_cluster(
    state: StateDirectory, count: int, *, relaxed: bool = False, pools: PoolRules = ONE_POOL
) -> NatsCluster:
    """The servers of a state, on free ports. Raises UsageError, StateUnusable."""
    if count not in NODE_COUNTS:
        wanted = " or ".join(map(str, NODE_COUNTS))
        raise UsageError(f"--nats-nodes {count}: choose {wanted}")
    refuse_other_count(state, count)
    if count == 1:
        port, monitor_port = free_ports(2)
        return NatsCluster((NatsServer(state, port, monitor_port, relaxed=relaxed, pools=pools),))
    ports = free_ports(PORTS_PER_NODE * count)
    listeners = tuple(f"{LOOPBACK}:{port}" for port in ports[2 * count :])
    routes = RouteAccess(listeners, _route_password(state))
    nodes = tuple(
        NatsServer(state, ports[index], ports[count + index], relaxed, index, routes, pools=pools)
        for index in range(count)
    )
    for node in nodes:
        make_private_directory(node.directory)
    return NatsCluster(nodes)


def refuse_other_count(state: StateDirectory, count: int) -> None:
    """Refuse a state that was made with another number of nodes. Raises StateUnusable."""
    made_with = nodes_of(state)
    if made_with in {0, count}:
        return
    raise StateUnusable(
        f"{state.root} was made with --nats-nodes {made_with}, and its streams stay where they are:"
        f" start it with --nats-nodes {made_with}, or choose another directory with --state"
    )


def nodes_of(state: StateDirectory) -> int:
    """The number of nodes that a state was made with; 0 if no server has run on it."""
    if (state.nats / nats.STORE).is_dir():
        return 1
    return sum(1 for _ in state.nats.glob(f"{nats.NODE_PREFIX}*/{nats.STORE}"))


async def why_node_not_ready(node: NatsServer) -> str | None:
    """Why a node is not ready; None when it serves and has caught up with its cluster."""
    reason = await nats.why_not_ready(node.port, node.host)
    if reason is not None or node.routes is None:
        return reason
    try:
        async with local_client(PROBE_TIMEOUT_S) as http:
            response = await http.get(f"{node.monitor_url}/healthz")
        health = response.json()
    except (httpx.HTTPError, ValueError) as error:
        return f"its monitor does not answer: {type(error).__name__}"
    if response.is_success:
        return None
    return str(health.get("error") or health.get("status") or response.status_code)


def _route_password(state: StateDirectory) -> str:
    """The secret by which the nodes know each other. It is made once, beside the keys."""
    path = state.nats / "route-password"
    if not path.exists():
        write_private(path, secrets.token_hex(32))
    return path.read_text().strip()
