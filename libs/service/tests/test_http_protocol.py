"""Slow and oversize requests lose their connection, and others go on (FINDINGS B14)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from fairlead_service.http_protocol import REST_BYTES_MAX, ConnectionLimits, DeadlineProtocol

pytestmark = pytest.mark.integration

HEAD_TIMEOUT_S = 0.3
HEAD_BYTES_MAX = 2000
GUARD_S = 20


@asynccontextmanager
async def _serve() -> AsyncIterator[int]:
    async def echo(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    async def ignore_body(_request: Request) -> PlainTextResponse:
        return PlainTextResponse("done")

    routes = [
        Route("/", echo, methods=["GET", "POST"]),
        Route("/ignore", ignore_body, methods=["POST"]),
    ]
    limits = ConnectionLimits(HEAD_TIMEOUT_S, HEAD_BYTES_MAX, 100)
    server = uvicorn.Server(
        uvicorn.Config(
            Starlette(routes=routes),
            port=0,
            lifespan="off",
            log_config=None,
            http=DeadlineProtocol.with_limits(limits),
        )
    )
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def _connection(
    port: int,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(GUARD_S):
        try:
            yield reader, writer
        finally:
            writer.close()


@pytest.mark.parametrize("start", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: a\r\nx: "])
async def test_a_head_that_never_ends_loses_its_connection(start: bytes) -> None:
    async with _serve() as port, _connection(port) as (reader, writer):
        writer.write(start)

        assert await reader.read() == b""


async def test_a_byte_now_and_then_does_not_keep_a_connection() -> None:
    async with _serve() as port, _connection(port) as (reader, writer):

        async def drip() -> None:
            writer.write(b"GET / HTTP/1.1\r\nx: ")
            while not writer.is_closing():
                writer.write(b"y")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        assert await reader.read() == b""
        dripping.cancel()


@pytest.mark.parametrize(
    "pieces",
    [
        [b"GET /%s HTTP/1.1\r\nhost: a\r\n\r\n" % (b"a" * 3000)],
        [b"GET / HTTP/1.1\r\nhost: a\r\nx: %s\r\n\r\n" % (b"a" * 3000)],
        [b"GET / HTTP/1.1\r\n", b"".join(b"x%d: y\r\n" % number for number in range(500))],
        [b"GET / HTTP/1.1\r\nx: ", b"a" * 1500, b"a" * 1000],
    ],
    ids=["long url", "long header", "many headers", "one header in pieces"],
)
async def test_an_oversize_head_is_refused(pieces: list[bytes]) -> None:
    async with _serve() as port, _connection(port) as (reader, writer):
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.05)

        assert (await reader.read()).startswith(b"HTTP/1.1 431")


async def test_a_large_body_beside_a_small_head_passes_and_the_connection_is_used_again() -> None:
    async with _serve() as port, _connection(port) as (reader, writer):
        for _ in range(2):
            head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n"
            writer.write(head + b"x" * 100_000)

            answer = await reader.readuntil(b"100000")
            assert answer.startswith(b"HTTP/1.1 200")


async def test_the_rest_of_an_ignored_body_cannot_keep_a_connection() -> None:
    async with _serve() as port, _connection(port) as (reader, writer):
        writer.write(b"POST /ignore HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\nx")
        await reader.readuntil(b"done")

        async def drip() -> None:
            while not writer.is_closing():
                writer.write(b"x")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        assert await reader.read() == b""
        dripping.cancel()


async def test_after_the_rest_of_an_ignored_body_the_connection_is_used_again() -> None:
    """A client that got its 413 early still sends the body, and then its next request."""
    async with _serve() as port, _connection(port) as (reader, writer):
        writer.write(b"POST /ignore HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\nx")
        await reader.readuntil(b"done")

        for _ in range(3):
            writer.write(b"x" * 33_333)
            await asyncio.sleep(0.02)
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")

        assert (await reader.readuntil(b"\r\n\r\n0")).startswith(b"HTTP/1.1 200")


async def test_the_rest_of_an_ignored_body_has_a_limit() -> None:
    async with _serve() as port, _connection(port) as (reader, writer):
        length = REST_BYTES_MAX * 2
        writer.write(b"POST /ignore HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % length)
        await reader.readuntil(b"done")

        with suppress(ConnectionError):
            for _ in range(length // 65_536):
                writer.write(b"x" * 65_536)
                await writer.drain()
        with suppress(ConnectionError):
            assert await reader.read() == b""
        assert writer.is_closing() or reader.at_eof() or reader.exception() is not None
