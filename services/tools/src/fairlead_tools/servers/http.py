"""A tool server at a URL: spoken to with its own headers, never told more than one answer may hold."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from typing_extensions import override

from fairlead_tools.servers.limits import MESSAGE_BYTES_MAX

CONNECT_S: Final = 10.0


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """A transport whose answers end when they become too long."""

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        # The standing stream of notifications has no end of its own: its events are bounded singly.
        if request.method == "POST":
            response.stream = BoundedStream(response.stream)
        return response


class BoundedStream(httpx2.AsyncByteStream):
    """A body that is read up to a limit."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._stream:
            read += len(chunk)
            if read > MESSAGE_BYTES_MAX:
                raise httpx2.ReadError(f"more than {MESSAGE_BYTES_MAX} bytes")
            yield chunk

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def spoken(
    url: str, headers: Mapping[str, str], timeout_s: float
) -> AsyncIterator[TransportStreams]:
    """The streams of a server at a URL."""
    # Nothing is decoded here, so that what is counted is what is kept.
    sent = {**headers, "accept-encoding": "identity"}
    timeout = httpx2.Timeout(timeout_s, connect=CONNECT_S, read=None)
    async with (
        httpx2.AsyncClient(
            headers=sent, timeout=timeout, transport=BoundedTransport(), trust_env=False
        ) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MESSAGE_BYTES_MAX
        ) as streams,
    ):
        yield streams
