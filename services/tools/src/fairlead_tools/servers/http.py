"""A tool server at a URL: its own headers, and answers of a bounded size."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import httpx2
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client
from typing_extensions import override

from fairlead_tools.servers.limits import MESSAGE_BYTES_MAX

CONNECT_S: Final = 10.0


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """An HTTP transport that ends an answer which becomes too long."""

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        # The stream of notifications never ends; the MCP library bounds each of its events.
        if request.method == "POST":
            response.stream = BoundedStream(response.stream)
        return response


class BoundedStream(httpx2.AsyncByteStream):
    """A body that may be read up to a limit."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MESSAGE_BYTES_MAX:
                raise httpx2.ReadError(f"more than {MESSAGE_BYTES_MAX} bytes")
            yield chunk

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def open_url(
    url: str, headers: Mapping[str, str], timeout_s: float
) -> AsyncIterator[Transport]:
    """The transport of a server at a URL, with an HTTP client that lives as long as the block."""
    # Compressed answers are refused, so that the counted bytes are the bytes in memory.
    request_headers = {**headers, "accept-encoding": "identity"}
    timeout = httpx2.Timeout(timeout_s, connect=CONNECT_S, read=None)
    async with httpx2.AsyncClient(
        headers=request_headers, timeout=timeout, transport=BoundedTransport(), trust_env=False
    ) as client:
        yield streamable_http_client(url, http_client=client, max_sse_event_size=MESSAGE_BYTES_MAX)
