"""A client of an event stream that counts fragments and parses nothing else."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, cast
from urllib.parse import urlsplit

from typing_extensions import override

CAUGHT_UP: Final = b": caught-up"
FRAGMENT: Final = b"session.next.text.delta"
CONNECTS_AT_ONCE: Final = 32


class StreamClient(asyncio.Protocol):
    """One open stream. A fragment that two reads share counts once."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._rest = b""
        self._began = 0.0
        self.caught_up = asyncio.Event()
        self.is_open = True
        self.first_event_s = 0.0
        self.fragments = 0

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._began = time.perf_counter()
        # The transport of uvloop is no subclass of the one of asyncio.
        cast("asyncio.Transport", transport).write(self._request)

    @override
    def data_received(self, data: bytes) -> None:
        whole = self._rest + data
        self.fragments += whole.count(FRAGMENT)
        # A fragment that ends within the rest was counted: the rest is shorter than the mark.
        self._rest = whole[-len(FRAGMENT) + 1 :]
        if not self.caught_up.is_set() and CAUGHT_UP in whole:
            self.first_event_s = time.perf_counter() - self._began
            self.caught_up.set()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self.caught_up.set()


@asynccontextmanager
async def open_streams(url: str, sessions: Sequence[str]) -> AsyncIterator[list[StreamClient]]:
    """One stream for each named session, all caught up. The password in the URL is the key."""
    address, loop = urlsplit(url), asyncio.get_running_loop()
    host, port = address.hostname, address.port
    assert host is not None, "the URL of a gateway has a host"
    assert port is not None, "the URL of a gateway has a port"
    key = "" if address.password is None else f"authorization: Bearer {address.password}\r\n"
    slots = asyncio.Semaphore(CONNECTS_AT_ONCE)
    transports: list[asyncio.BaseTransport] = []

    async def open_stream(session: str) -> StreamClient:
        request = f"GET /api/session/{session}/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n{key}\r\n"
        async with slots:
            transport, client = await loop.create_connection(
                lambda: StreamClient(request.encode()), host, port
            )
            transports.append(transport)
            await client.caught_up.wait()
        assert client.is_open, "the gateway ended a stream"
        return client

    try:
        yield list(await asyncio.gather(*(open_stream(session) for session in sessions)))
    finally:
        for transport in transports:
            transport.close()
