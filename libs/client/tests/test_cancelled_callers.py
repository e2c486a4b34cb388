"""Callers that are cancelled at every step of what they do: nothing stays behind, and nobody else notices."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_client import AsyncFairlead
from fairlead_testing.nats import Server
from libs.client.tests.conftest import event, reply, stream
from libs.client.tests.test_async_commands import RECEIPT
from libs.client.tests.test_nats_client import connect, make_seed, scripted_ingest, users

pytestmark = pytest.mark.timeout(120)

STEPS = 80
"""A caller takes fewer turns of the event loop than that."""
ROUNDS = 4
WAIT_S = 10
CONNECTIONS_MAX = 3

Work = Callable[[AsyncFairlead], Coroutine[Any, Any, object]]


async def read(fairlead: AsyncFairlead) -> int:
    return len([event async for event in fairlead.events("ses_a")])


async def export(fairlead: AsyncFairlead) -> int:
    return len([piece async for piece in fairlead.export("ses_a")])


async def follow(fairlead: AsyncFairlead) -> None:
    async for _event in fairlead.follow("ses_a", after=0):
        pass


async def cancel_at_each_step(fairlead: AsyncFairlead, work: Work) -> None:
    """A cancellation in any step ends the caller, and the last ones come too late."""
    for steps in [*range(STEPS)] * ROUNDS:
        task = asyncio.create_task(work(fairlead))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        done, _pending = await asyncio.wait({task}, timeout=WAIT_S)
        assert done, steps


class KeptConnections:
    """A gateway that keeps connections open, and counts them."""

    def __init__(self) -> None:
        self.open = 0
        self._serving = set[asyncio.Task[None] | None]()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.current_task())
        self.open += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(head.decode().lower(), reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _answer(
        self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        length = head.partition("content-length: ")[2].partition("\r\n")[0]
        await reader.readexactly(int(length or "0"))
        path = head.split()[1].partition("?")[0]
        if path.endswith(("/event", "/stream")):
            writer.write(stream(event(1), b": caught-up\n\n") + b"0\r\n\r\n")
        elif path.endswith("/export"):
            writer.write(reply(b"whole", mime="application/x-ndjson").replace(b"close", b"keep"))
        else:
            writer.write(reply({"data": RECEIPT}).replace(b"close", b"keep"))
        await writer.drain()

    async def end(self) -> None:
        await asyncio.gather(*(task for task in self._serving if task is not None))


@pytest.fixture
async def gateway() -> AsyncIterator[tuple[KeptConnections, str]]:
    kept = KeptConnections()
    server = await asyncio.start_server(kept.serve, "127.0.0.1", 0)
    yield kept, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    await kept.end()


@pytest.mark.parametrize(
    "work",
    [read, export, follow, lambda fairlead: fairlead.prompt("ses_a", "Hi")],
    ids=["read", "export", "follow", "prompt"],
)
async def test_a_caller_that_is_cancelled_leaves_no_connection_to_a_gateway(
    gateway: tuple[KeptConnections, str], work: Work
) -> None:
    """A request that is cancelled in an unlucky moment keeps its connection of httpx for ever."""
    kept, url = gateway
    async with AsyncFairlead(url) as fairlead:
        await cancel_at_each_step(fairlead, work)
        async with asyncio.timeout(WAIT_S):
            while kept.open > CONNECTIONS_MAX:
                await asyncio.sleep(0.02)


@pytest.mark.integration
async def test_a_caller_that_is_cancelled_breaks_no_connection_to_nats(tmp_path: Path) -> None:
    """nats-py loses a cancellation, or its connection, if a ping is cancelled."""
    seed, monitor = tmp_path / "client.nk", free_port()
    more = f"{users(make_seed(seed))}\nhttp: 127.0.0.1:{monitor}"
    server = Server(tmp_path, free_port(), more=more, jetstream=False)
    server.start()
    try:
        async with scripted_ingest(server) as ingest, connect(server, seed) as fairlead:
            ingest.answers["session.prompt"] = {"data": RECEIPT}
            await ingest.write(1)
            async with aclosing(fairlead.follow("ses_a", after=0)) as others:
                assert (await anext(others)).seq == 1
                before = await count_connections(monitor)
                for work in (read, follow, lambda fairlead: fairlead.prompt("ses_a", "Hi")):
                    await cancel_at_each_step(fairlead, work)
                await ingest.write(2)
                assert (await anext(others)).seq == 2
            assert await count_connections(monitor) == before
    finally:
        server.kill()


async def count_connections(monitor: int) -> int:
    """How many connections a server of NATS has ever had."""
    async with httpx.AsyncClient(trust_env=False) as http:
        varz = (await http.get(f"http://127.0.0.1:{monitor}/varz")).json()
    total: int = varz["total_connections"]
    return total
