"""Streams for a screen: read a few times a second, whole, and beside requests that do not wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from fairlead_cli.chat.gathered_http import READS_AT_ONCE, GatheredBytes, open_gathered_http

PIECES = [f"data: fragment {number}\n\n".encode() for number in range(80)]
_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: {mime}\r\ntransfer-encoding: chunked\r\n\r\n"


@asynccontextmanager
async def serve_pieces() -> AsyncIterator[int]:
    """A server that sends its pieces one by one, 200 a second; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        is_stream = b"event-stream" in request
        mime = "text/event-stream" if is_stream else "text/plain"
        writer.write(_HEAD.format(mime=mime).encode())
        for piece in PIECES if is_stream else [b"at once"]:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await asyncio.sleep(0.005)
        writer.write(b"0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_busy_stream_is_read_less_often_than_its_pieces_come() -> None:
    async with serve_pieces() as port:
        stream = GatheredBytes(await anyio.connect_tcp("127.0.0.1", port))
        await stream.send(b"GET / HTTP/1.1\r\naccept: text/event-stream\r\n\r\n")
        reads = [piece async for piece in stream]
        await stream.aclose()

    assert READS_AT_ONCE < len(reads) < len(PIECES) / 2
    assert all(piece in b"".join(reads) for piece in PIECES)


async def test_a_gathered_stream_is_whole_and_other_requests_are_answered_beside_it() -> None:
    async with serve_pieces() as port:
        url = f"http://127.0.0.1:{port}"
        async with open_gathered_http(url) as http:
            headers = {"accept": "text/event-stream"}
            async with http.stream("GET", url, headers=headers) as stream:
                beside = (await http.get(url)).text
                body = b"".join([piece async for piece in stream.aiter_bytes()])

    assert beside == "at once"
    assert body == b"".join(PIECES)
