"""The media of the contract tests: memory, a real server, and a cluster of three."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream import client
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.provision import provision
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.subjects import SHARDS, Address
from fairlead_service import ids
from fairlead_testing.nats import Server
from fairlead_testing.nats_cluster import NatsCluster, run_beside, run_cluster


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One provisioned server for all tests; each test has sessions of its own."""
    running = Server(tmp_path_factory.mktemp("nats"), free_port())
    running.start()
    try:
        run_beside(provision(running.address))
        yield running
    finally:
        running.kill()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsCluster]:
    """One provisioned cluster for all tests. A test that ends a node starts it again."""
    with run_cluster(tmp_path_factory.mktemp("cluster")) as running:
        run_beside(running.provision())
        yield running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that a test may kill."""
    running = Server(tmp_path, free_port())
    running.start()
    try:
        yield running
    finally:
        running.kill()


@pytest.fixture(
    params=[
        "memory_eventlog",
        pytest.param("jetstream", marks=pytest.mark.integration),
        pytest.param("replicated", marks=pytest.mark.integration),
    ]
)
def address(request: pytest.FixtureRequest) -> NatsAddress | None:
    """Where the medium is: one server, or three with replicated streams; None for memory."""
    if request.param == "memory_eventlog":
        return None
    name = "server" if request.param == "jetstream" else "cluster"
    running: Server | NatsCluster = request.getfixturevalue(name)
    return running.address


@pytest.fixture
async def eventlog(address: NatsAddress | None) -> AsyncIterator[EventLog]:
    """Every port, on each medium."""
    if address is None:
        yield memory_eventlog()
        return
    async with connect(address, name="contract") as connected:
        await wait_for_leaders(connected)
        yield connected


async def wait_for_leaders(eventlog: EventLog) -> None:
    """Wait until every shard answers: a busy machine may elect a leader between two tests."""
    async with asyncio.timeout(60):
        for shard in range(SHARDS):
            while True:
                try:
                    await eventlog.shards.last_position(shard)
                    break
                except LogUnavailable:
                    await asyncio.sleep(0.1)


@pytest.fixture
def at() -> Address:
    """A session that nobody else uses."""
    return Address("default", ids.session_id())


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that soon gives up a server which refuses it, and tries as often as it can until then."""
    monkeypatch.setattr(client, "CONNECT_S", 1.5)
