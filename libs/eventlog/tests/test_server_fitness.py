"""A server that lacks something: the cause and the cure are said, and work begins when it is mended. A20."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.errors import ServerUnfit
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.server_fitness import find_unfit
from fairlead_eventlog.provision import provision
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration

TIMEOUT_S = 20.0
FIT: dict[str, Any] = {"version": "2.15.1", "jetstream": True, "max_payload": 8 * 1024 * 1024}


@pytest.mark.parametrize(
    ("changes", "cause", "cure"),
    [
        ({"version": "2.11.9"}, "is nats-server 2.11.9", "nats-server 2.12 or later"),
        ({"version": "v1.4.0-beta"}, "is nats-server v1.4.0-beta", "2.12 or later"),
        ({"jetstream": False}, "without JetStream", "`jetstream` block"),
        ({"max_payload": 1024 * 1024}, "1,048,576 bytes", "`max_payload: 8MB`"),
    ],
)
def test_what_a_server_lacks_is_named_with_its_cure(
    changes: dict[str, Any], cause: str, cure: str
) -> None:
    unfit = find_unfit("nats.example:4222", FIT | changes)

    assert unfit is not None
    assert "NATS at nats.example:4222" in str(unfit)
    assert cause in str(unfit)
    assert cure in unfit.cure


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"version": "2.12.0-RC.1"},
        {"version": "own build"},
        {"jetstream": False, "cluster": "c"},
    ],
)
def test_a_server_that_may_do_is_not_refused(changes: dict[str, Any]) -> None:
    """A build without a number, and a node of a cluster that leaves JetStream to the others."""
    assert find_unfit("s", FIT | changes) is None


async def test_a_server_without_jetstream_is_refused_until_it_has_it(tmp_path: Path) -> None:
    server = Server(tmp_path, free_port(), jetstream=False)
    server.start()
    try:
        with pytest.raises(ServerUnfit, match="runs without JetStream"):
            await provision(server.address)
        server.kill()
        server.jetstream = True
        server.start()

        await provision(server.address)
    finally:
        server.kill()


async def test_a_server_for_small_messages_is_refused_until_it_takes_large_ones(
    tmp_path: Path,
) -> None:
    """A20: two steers of 600 KB made a commit that the server did not take, for ever."""
    server = Server(tmp_path, free_port(), more="max_payload: 1MB")
    server.start()
    try:
        with pytest.raises(ServerUnfit, match="max_payload: 8MB"):
            async with connect(server.address, name="test"):
                pass
        server.more = ""
        server.kill()
        server.start()
        await provision(server.address)
        async with connect(server.address, name="test") as eventlog:
            assert eventlog.complaint() is None
    finally:
        server.kill()


async def test_a_server_that_comes_back_unfit_makes_the_process_unready_until_it_is_mended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The connection holds, so nothing else would say why commits fail."""
    server = Server(tmp_path, free_port())
    server.start()
    try:
        async with open_link(server.address, name="test") as link:
            server.kill()
            server.more = "max_payload: 1MB"
            server.start()
            await wait_until(lambda: "max_payload: 8MB" in (link.complaint() or ""))

            server.kill()
            server.more = ""
            server.start()
            await wait_until(lambda: link.complaint() is None)
    finally:
        server.kill()
    assert "NATS came back and lacks something" in caplog.text


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not is_so():
            await asyncio.sleep(0.05)


async def test_an_old_server_is_refused_over_a_real_connection() -> None:
    async with old_server() as address:
        with pytest.raises(ServerUnfit, match=r"nats-server 2\.10\.4"):
            async with open_link(address, name="test"):
                pass


@asynccontextmanager
async def old_server() -> AsyncIterator[NatsAddress]:
    """Speaks as much of the protocol as a connection needs, as a server of an earlier release."""
    info = json.dumps(FIT | {"version": "2.10.4", "server_id": "OLD", "proto": 1})

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionError):
            writer.write(f"INFO {info}\r\n".encode())
            while line := await reader.readline():
                if line.startswith(b"PING"):
                    writer.write(b"PONG\r\n")

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield NatsAddress(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()
