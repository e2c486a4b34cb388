"""The bench's own HTTP connection."""

import asyncio

from fairlead_cli.bench.wire import Wire


async def test_a_connection_that_stood_idle_is_opened_again() -> None:
    opened = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Wire.open(f"http://127.0.0.1:{port}") as wire:
        assert await wire.post("/", {}) == b"ok"
        await asyncio.sleep(0.2)
        assert await wire.post("/", {}) == b"ok"

    assert opened == 2
