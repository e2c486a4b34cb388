"""History and streams from a replica that lags behind the leader of the log (A1)."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import open_ports
from fairlead_eventlog.jetstream.registers.log_status import JetStreamLogStatus
from fairlead_eventlog.provision import provision
from fairlead_schema import subjects
from fairlead_schema.events import SyntheticAdded
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_testing.nats import Server
from fairlead_testing.nats_cluster import run_beside
from fairlead_testing.scripted_link import ScriptedLink, open_scripted_link
from services.gateway.tests.conftest import Append, Listen

pytestmark = pytest.mark.integration

AT = Address(DEFAULT_TENANT, "ses_1")
HISTORY = "/api/session/ses_1/history"
FUTURE = (
    b'{"id":"cmt_9","events":[{"id":"evt_9","seq":5,"type":"session.flown","version":1,'
    b'"time":1,"data":{}}]}'
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("nats"), free_port())
    running.start()
    try:
        run_beside(provision(running.address))
        yield running
    finally:
        running.kill()


@pytest.fixture
async def link(server: Server) -> AsyncIterator[ScriptedLink]:
    async with open_scripted_link(server.address) as scripted:
        yield scripted


@pytest.fixture
async def eventlog(link: ScriptedLink) -> AsyncIterator[EventLog]:
    ports = open_ports(link, JetStreamLogStatus(link))
    yield ports
    await ports.log.erase(AT)


@pytest.fixture
async def positions(append: Append) -> list[int]:
    """Where the commits of a session are: its creation, and three notes of one event each."""
    notes = [SyntheticAdded(message_id=f"msg_{n}", text=f"said {n}") for n in range(3)]
    created = await append("ses_1")
    return [created.position, *[(await append("ses_1", note)).position for note in notes]]


@pytest.mark.parametrize("known", [0, 1, 3], ids=["nothing", "its creation", "all but the last"])
async def test_a_page_of_history_ends_where_the_leader_ends(
    client: httpx.AsyncClient, link: ScriptedLink, positions: list[int], known: int
) -> None:
    """A1: a page that ends earlier would tell the client that there is no more."""
    link.lag(positions[known - 1] if known else positions[0] - 1, reads=3)

    page = (await client.get(HISTORY)).json()

    assert [event["durable"]["seq"] for event in page["data"]] == [2, 3, 4]
    assert page["hasMore"] is False
    assert link.lagging_reads < 3, "the page met the lagging replica"


async def test_a_page_behind_a_cursor_ends_where_the_leader_ends(
    client: httpx.AsyncClient, link: ScriptedLink, positions: list[int]
) -> None:
    link.lag(positions[2], reads=3)

    page = (await client.get(HISTORY, params={"after": 2})).json()

    assert [event["durable"]["seq"] for event in page["data"]] == [3, 4]


async def test_history_before_an_unreadable_place_is_read_up_to_it(
    client: httpx.AsyncClient, link: ScriptedLink, positions: list[int]
) -> None:
    """A1, D7: the page says where the log cannot be read, although the replica lacks that commit."""
    await link.store(subjects.log(AT), FUTURE)
    link.lag(positions[1], reads=2)

    page = (await client.get(HISTORY)).json()

    assert [event["durable"]["seq"] for event in page["data"]] == [2, 3, 4]
    assert page["unreadable"]["seq"] == 5


async def test_a_stream_begins_with_all_that_the_leader_has(
    listen: Listen, link: ScriptedLink, positions: list[int]
) -> None:
    """A1: then it follows the session."""
    link.lag(positions[0], reads=3)

    async with listen("/api/session/ses_1/event") as frames, asyncio.timeout(20):
        seqs = [(await frames.get()).partition(b"\n")[0] for _ in range(3)]

    assert seqs == [b"id: 2", b"id: 3", b"id: 4"]
