"""A server of NATS that accepts a connection and goes no further."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairlead_client import AsyncFairlead, ClientClosed, NatsLogin, NotInTime
from fairlead_client.nats_link import connection
from fairlead_client.nats_login import CONNECT_S

INFO = b'INFO {"server_id":"x","version":"2.14.0","max_payload":1048576,"headers":true}\r\n'
HANG_S = 20


class StuckServer:
    """Says at most hello."""

    def __init__(self, hello: bytes) -> None:
        self.url = ""
        self.has_begun, self.has_ended = asyncio.Event(), asyncio.Event()
        self._hello = hello

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self._hello)
        self.has_begun.set()
        while await reader.read(1024):
            pass
        writer.close()
        self.has_ended.set()


@pytest.fixture(params=[b"", INFO], ids=["silent", "half connected"])
async def stuck(request: pytest.FixtureRequest) -> AsyncIterator[StuckServer]:
    server = StuckServer(request.param)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"nats://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    yield server
    listener.close()
    await listener.wait_closed()


async def test_a_client_that_is_closed_while_it_connects_leaves_no_connection(
    stuck: StuckServer,
) -> None:
    """One caller was cancelled, and another one still waits."""
    async with asyncio.timeout(CONNECT_S - 1):
        fairlead = AsyncFairlead.over_nats(NatsLogin(stuck.url))
        cancelled, waiting = (asyncio.create_task(fairlead.pending("ses_a")) for _ in range(2))
        await stuck.has_begun.wait()
        await asyncio.sleep(0.05)
        cancelled.cancel()
        await asyncio.wait({cancelled})
        await fairlead.aclose()
        await stuck.has_ended.wait()
        with pytest.raises(ClientClosed):
            await waiting
    assert cancelled.cancelled()


async def test_the_time_of_the_caller_counts_while_it_connects(
    stuck: StuckServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_S", HANG_S)
    async with asyncio.timeout(HANG_S / 2):
        async with AsyncFairlead.over_nats(NatsLogin(stuck.url)) as fairlead:
            with pytest.raises(NotInTime, match="no connection within"):
                await fairlead.ask("ses_a", "Hi", timeout_s=0.2)
