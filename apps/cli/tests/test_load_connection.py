"""The bench's own HTTP connection."""

import asyncio
from contextlib import closing

from fairlead_cli.bench.load_connection import LoadConnection


async def test_a_connection_that_stood_idle_is_opened_again() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with closing(writer):
            await reader.readuntil(b"{}")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, LoadConnection.open(f"http://127.0.0.1:{port}") as connection:
        assert await connection.post("/", {}) == b"ok"
        await asyncio.sleep(0.2)
        assert await connection.post("/", {}) == b"ok"

    assert connections == 2
