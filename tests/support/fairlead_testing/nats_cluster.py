"""Three nats-servers on loopback that a test owns, as one cluster with replicated streams."""

import asyncio
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from fairlead_cli.embedded.ports import free_ports
from fairlead_cli.local_stack.server_programs import find_nats_server
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.link import ServerRefusal
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.provision import provision
from fairlead_schema.identity.nats_address import NatsAddress

REPLICAS: Final = 3
WAIT_S: Final = 60.0
_PROBE: Final = "PROBE"

Found = TypeVar("Found")


@dataclass
class ClusterNode:
    """One nats-server of a cluster. A stopped node keeps its store."""

    name: str
    directory: Path
    port: int
    config: str
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def address(self) -> NatsAddress:
        """The address of this node alone."""
        return NatsAddress(f"nats://127.0.0.1:{self.port}")

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start the server, and do not wait for it."""
        assert not self.running, f"{self.name} runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / "nats.conf"
        path.write_text(self.config)
        with (self.directory / "nats.log").open("ab") as log:
            self.process = subprocess.Popen(
                [find_nats_server(), "--config", path], stdout=log, stderr=log
            )

    def kill(self) -> None:
        """End the server at once, as a crash does."""
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """End the server in order, as a rolling restart does."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Stop the process where it is. Its connections stay open."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(how)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.process = None


@dataclass
class NatsCluster:
    """Three nodes. Every one knows the others."""

    nodes: tuple[ClusterNode, ...]

    @property
    def address(self) -> NatsAddress:
        """The addresses of all nodes: a client reconnects to any of them."""
        return NatsAddress(",".join(str(node.address.servers[0]) for node in self.nodes))

    def start(self) -> None:
        """Start every node, and wait until replicated streams can be made."""
        for node in self.nodes:
            node.start()
        run_beside(self.wait_until_ready())

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()

    def node(self, name: str) -> ClusterNode:
        return next(node for node in self.nodes if node.name == name)

    async def provision(self) -> None:
        """Apply the stream declarations, again until a cluster under load has taken them all."""

        async def apply() -> bool:
            await provision(self._running_address(), replicas=REPLICAS)
            return True

        await self._wait_for(apply)

    async def wait_until_current(self, stream: str) -> None:
        """Wait until a stream has a leader, and every node has a current replica."""
        await self._wait_for(lambda: self._is_current(stream))

    async def find_leader(self, stream: str) -> ClusterNode:
        """The node that leads a stream now. Waits for an election."""

        async def find() -> str:
            info = await self._api(f"STREAM.INFO.{stream}")
            return str(info.get("cluster", {}).get("leader") or "")

        return self.node(await self._wait_for(find))

    async def find_followers(self, stream: str) -> tuple[ClusterNode, ...]:
        """The running nodes that do not lead a stream."""
        leader = await self.find_leader(stream)
        return tuple(node for node in self.nodes if node is not leader and node.running)

    async def step_down(self, stream: str) -> None:
        """Make the leader of a stream give up its place, so that another is elected."""
        await self._api(f"STREAM.LEADER.STEPDOWN.{stream}")

    async def wait_until_ready(self) -> None:
        """Wait until a stream with a replica on every node can be made."""

        async def try_stream() -> bool:
            config = {"name": _PROBE, "subjects": ["cluster.probe"], "num_replicas": REPLICAS}
            await self._api(f"STREAM.CREATE.{_PROBE}", {**config, "storage": "memory"})
            return True

        await self._wait_for(try_stream)
        await self._api(f"STREAM.DELETE.{_PROBE}")

    async def _is_current(self, stream: str) -> bool:
        cluster = (await self._api(f"STREAM.INFO.{stream}")).get("cluster", {})
        replicas = cluster.get("replicas") or ()
        return bool(cluster.get("leader")) and all(
            replica.get("current") and not replica.get("offline") for replica in replicas
        )

    async def _api(self, verb: str, body: object = None) -> dict[str, Any]:
        async with open_link(self._running_address(), name="cluster-probe", timeout_s=2.0) as link:
            return await link.api(verb, body)

    def _running_address(self) -> NatsAddress:
        urls = [node.address.servers[0] for node in self.nodes if node.running]
        return NatsAddress(",".join(urls))

    async def _wait_for(self, look: Callable[[], Awaitable[Found]]) -> Found:
        """Look until there is something. An unavailable cluster is looked at again."""
        deadline, last = time.monotonic() + WAIT_S, "nothing found"
        while time.monotonic() < deadline:
            try:
                if found := await look():
                    return found
            except (LogError, ServerRefusal) as error:
                last = str(error)
            await asyncio.sleep(0.1)
        raise AssertionError(f"the cluster is not ready: {last}")


def build_cluster(directory: Path) -> NatsCluster:
    """Three nodes on free ports, not started."""
    ports = free_ports(2 * REPLICAS)
    clients, routes = ports[:REPLICAS], ports[REPLICAS:]
    known = ", ".join(f"nats-route://127.0.0.1:{port}" for port in routes)
    return NatsCluster(
        tuple(
            ClusterNode(
                f"n{index + 1}",
                directory / f"n{index + 1}",
                clients[index],
                _config(directory, f"n{index + 1}", clients[index], routes[index], known),
            )
            for index in range(REPLICAS)
        )
    )


@contextmanager
def run_cluster(directory: Path) -> Iterator[NatsCluster]:
    """Three nodes for the length of a block, ready for replicated streams."""
    cluster = build_cluster(directory)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _config(directory: Path, name: str, port: int, route: int, known: str) -> str:
    return f"""\
server_name: {name}
listen: "127.0.0.1:{port}"
max_payload: 8MB
jetstream {{ store_dir: "{directory / name / "js"}", sync_interval: always }}
cluster {{
  name: fairlead-test
  listen: "127.0.0.1:{route}"
  no_advertise: true
  routes: [{known}]
}}
"""


def run_beside(work: Coroutine[Any, Any, Found]) -> Found:
    """Run a coroutine in another thread, because an event loop may run in this one."""
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(asyncio.run, work).result()
