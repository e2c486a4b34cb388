"""HTTP for screens: what streams in is read ten times a second, and not fragment by fragment.

Every read wakes the program and goes through all layers of HTTP, which costs more than what a fragment
says. A screen is drawn ten times a second, so the bytes wait in the socket until then.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import anyio.abc
import httpcore
import httpx
from typing_extensions import override

from fairlead_client.async_client.http_connection import CONNECT_S, LIMITS, TIMEOUT_S
from fairlead_client.tls_trust import trust_of

GATHER_S: Final = 0.1
READS_AT_ONCE: Final = 5
"""So many reads follow each other without a pause: what comes seldom is there at once."""
_STREAM: Final = "text/event-stream"


def open_gathered_http(url: str) -> httpx.AsyncClient:
    """HTTP to a gateway whose streams are gathered. Everything else is read as it comes."""
    return httpx.AsyncClient(
        timeout=httpx.Timeout(TIMEOUT_S, connect=CONNECT_S),
        trust_env=False,
        transport=_SplitTransport(trust_of(url)),
    )


class _SplitTransport(httpx.AsyncBaseTransport):
    """Sends requests for streams over connections of their own."""

    def __init__(self, trust: ssl.SSLContext | bool) -> None:  # noqa: FBT001 - as httpx takes it
        # The certificates of the machine take time to load, so both share them.
        if isinstance(trust, bool):
            context = httpx.create_ssl_context(verify=trust, trust_env=False)
        else:
            context = trust
        self._plain = httpx.AsyncHTTPTransport(verify=context, limits=LIMITS, trust_env=False)
        self._streams = httpx.AsyncHTTPTransport(verify=context, trust_env=False)
        # The library has no other way to choose how a socket is read.
        self._streams._pool = httpcore.AsyncConnectionPool(  # noqa: SLF001
            ssl_context=context, max_connections=None, network_backend=_GatheringBackend()
        )

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        is_stream = request.headers.get("accept") == _STREAM
        return await (self._streams if is_stream else self._plain).handle_async_request(request)

    @override
    async def aclose(self) -> None:
        await self._plain.aclose()
        await self._streams.aclose()


class _GatheringBackend(httpcore.AnyIOBackend):
    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        opened = await super().connect_tcp(host, port, timeout, local_address, socket_options)
        # Below TLS, which reads its records out of what was gathered.
        opened._stream = GatheredBytes(opened._stream)  # type: ignore[attr-defined] # noqa: SLF001
        return opened


class GatheredBytes(anyio.abc.ByteStream):
    """Reads a stream of bytes at most `1 / GATHER_S` times a second once it has become busy."""

    def __init__(
        self, inner: anyio.abc.ByteStream, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._credit = float(READS_AT_ONCE)
        self._counted_at = clock()

    @override
    async def receive(self, max_bytes: int = 65536) -> bytes:
        self._count()
        if self._credit < 1:
            await asyncio.sleep((1 - self._credit) * GATHER_S)
            self._count()
        piece = await self._inner.receive(max_bytes)
        if len(piece) < max_bytes:  # Otherwise more is there already.
            self._credit -= 1
        return piece

    def _count(self) -> None:
        now = self._clock()
        earned = (now - self._counted_at) / GATHER_S
        self._credit, self._counted_at = min(READS_AT_ONCE, self._credit + earned), now

    @override
    async def send(self, item: bytes) -> None:
        await self._inner.send(item)

    @override
    async def send_eof(self) -> None:
        await self._inner.send_eof()

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()

    @property
    @override
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        return self._inner.extra_attributes
