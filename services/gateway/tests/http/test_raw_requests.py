"""Requests as bytes on a socket: what no well-behaved client sends (FINDINGS B1, B14)."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.applications import Starlette

from fairlead_service.http_protocol import ConnectionLimits, DeadlineProtocol
from services.gateway.tests.conftest import Append

pytestmark = pytest.mark.integration

GUARD_S = 20
HOST = b"host: 127.0.0.1\r\n"
UPGRADE = (
    b"connection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n"
)


@pytest.fixture
async def port(app: Starlette, append: Append) -> AsyncIterator[int]:
    """The gateway on a real socket, with the protocol that the process uses."""
    await append("ses_1")
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            port=0,
            lifespan="off",
            log_config=None,
            access_log=False,
            ws="none",
            http=DeadlineProtocol.with_limits(ConnectionLimits(0.3, 4000, 100)),
        )
    )
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await task


def request(
    path: bytes = b"/api/agent",
    *,
    method: bytes = b"GET",
    head: bytes = HOST,
    body: bytes = b"",
    version: bytes = b"1.1",
) -> bytes:
    return b"%s %s HTTP/%s\r\n%sconnection: close\r\n\r\n%s" % (method, path, version, head, body)


def post(head: bytes, body: bytes = b"") -> bytes:
    return request(b"/api/session", method=b"POST", head=HOST + head, body=body)


async def statuses(port: int, data: bytes) -> list[int]:
    """The statuses that come back until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    async with asyncio.timeout(GUARD_S):
        answer = await reader.read()
    writer.close()
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


REFUSED = {
    "two hosts": request(head=HOST + b"host: evil.example\r\n"),
    "the same host twice": request(head=HOST + HOST),
    "host with a user": request(head=b"host: evil@127.0.0.1\r\n"),
    "host with a final dot": request(head=b"host: localhost.\r\n"),
    "host with an empty port": request(head=b"host: 127.0.0.1:\r\n"),
    "host with a zone": request(head=b"host: [::1%25lo]\r\n"),
    "half a bracket": request(head=b"host: [127.0.0.1\r\n"),
    "short address": request(head=b"host: 127.1\r\n"),
    "address as a number": request(head=b"host: 2130706433\r\n"),
    "any address": request(head=b"host: 0.0.0.0\r\n"),
    "list of hosts": request(head=b"host: 127.0.0.1, evil.example\r\n"),
    "no host": request(head=b""),
    "no host in HTTP/1.0": request(head=b"", version=b"1.0"),
    "no version": b"GET /api/agent\r\n\r\n",
    "absolute form under a foreign host": request(
        b"http://127.0.0.1/api/agent", head=b"host: evil.example\r\n"
    ),
    "origin null": request(head=HOST + b"origin: null\r\n"),
    "own origin twice": request(head=HOST + b"origin: http://127.0.0.1\r\n" * 2),
    "origin with a path": request(head=HOST + b"origin: http://127.0.0.1/\r\n"),
    "origin with a user": request(head=HOST + b"origin: http://127.0.0.1@evil.example\r\n"),
    "web socket of a foreign page": request(
        b"/api/session/ses_1/event", head=HOST + b"origin: http://evil.example\r\n" + UPGRADE
    ),
    "preflight of a foreign page": request(
        method=b"OPTIONS", head=HOST + b"origin: http://evil.example\r\n"
    ),
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
async def test_forged_hosts_and_origins_are_refused(port: int, data: bytes) -> None:
    assert await statuses(port, data) == [403]


CHUNKED = b"transfer-encoding: chunked\r\n"
UNREADABLE = {
    "length and chunks": post(
        b"content-length: 5\r\n" + CHUNKED, b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
    ),
    "unknown coding": post(b"transfer-encoding: xchunked\r\n", b"0\r\n\r\n"),
    "two codings": post(CHUNKED + b"transfer-encoding: identity\r\n", b"0\r\n\r\n"),
    "two lengths": post(b"content-length: 2\r\ncontent-length: 3\r\n", b"{}"),
    "negative length": post(b"content-length: -1\r\n"),
    "length with a sign": post(b"content-length: +2\r\n", b"{}"),
    "length beyond all numbers": post(b"content-length: 99999999999999999999999\r\n"),
    "chunk without a size": post(CHUNKED, b"zz\r\n"),
    "chunks with bare line feeds": post(CHUNKED, b"2\n{}\n0\n\n"),
    "head with bare line feeds": b"GET /api/agent HTTP/1.1\nhost: 127.0.0.1\n\n",
    "folded header": request(head=b"host: 127.0.0.1\r\n evil.example\r\n"),
    "blank before the colon": request(head=b"host : 127.0.0.1\r\n"),
    "NUL in a header": request(head=b"host: 127.0.0.1\0.evil.example\r\n"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "tunnel": request(b"127.0.0.1:22", method=b"CONNECT"),
    "raw bytes in the path": request(b"/api/session/\xff"),
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
async def test_a_request_that_two_servers_could_read_differently_is_refused(
    port: int, data: bytes
) -> None:
    """Nothing that follows such a request on its connection counts (request smuggling)."""
    assert await statuses(port, data + request()) == [400]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (request(b"//api/agent"), 404),
        (request(b"/api/./agent"), 404),
        (request(b"/x/../api/agent"), 404),
        (request(b"/x/%2e%2e/api/agent"), 404),
        (request(b"/api/agent;x=1"), 404),
        (request(b"/api/agent%00"), 404),
        (request(b"*", method=b"OPTIONS"), 404),
        (request(method=b"HEAD"), 405),
        (request(method=b"TRACE"), 405),
        (request(method=b"OPTIONS"), 405),
        (request(b"/api/session/%ff%fe"), 400),
        (request(b"/api/session?search=%00"), 400),
        (request(b"/api/location", head=HOST + b"x-opencode-directory: %00\r\n"), 400),
        (request(b"/api/permission/request", head=HOST + b"x-opencode-directory: %00\r\n"), 400),
        (request(b"/api/session/ses_1/event", head=HOST + b"last-event-id: \xb2\r\n"), 400),
        (post(b"content-encoding: gzip\r\ncontent-length: 4\r\n", b"\x1f\x8b\x08\x00"), 400),
        (post(b"content-length: 10000000000\r\n"), 413),
        (request(head=HOST + UPGRADE), 200),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_odd_requests_have_a_plain_answer(port: int, data: bytes, status: int) -> None:
    assert await statuses(port, data) == [status]


async def test_each_request_of_a_pipeline_is_judged_by_itself(port: int) -> None:
    own = b"GET /api/agent HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"

    answers = await statuses(port, own + request(head=b"host: evil.example\r\n"))

    assert answers == [200, 403]


async def test_half_a_request_behind_a_whole_one_does_not_keep_the_connection(port: int) -> None:
    """B14: the deadline of a head also holds for the second request of a connection."""
    own = b"GET /api/agent HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"

    assert await statuses(port, own + b"GET /api/agent HT") == [200]
