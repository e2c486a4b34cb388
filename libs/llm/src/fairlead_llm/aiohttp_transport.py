"""The HTTP/1.1 transport of provider calls: httpx above, aiohttp's parser and connections below.

It hands on what one read of the socket brought, whatever the number of HTTP chunks in it (ADR 0036).
"""

import io
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final

import aiohttp
import httpx
from typing_extensions import override
from yarl import URL

# A provider may send long headers with its limits and its trace.
HEADER_BYTES_MAX: Final = 64 * 1024
# Shorter than the 5 s after which common servers close a quiet connection: a request must not meet the close.
KEEPALIVE_S: Final = 4.0


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends requests over a pool of connections. Its errors are those of httpx."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        connect_s = request.extensions.get("timeout", {}).get("connect")
        with _httpx_errors():
            response = await self._open_session().request(
                request.method,
                # The URL is encoded already: a second encoding could change it.
                URL(str(request.url), encoded=True),
                headers=request.headers.multi_items(),
                data=io.BytesIO(body) if body else None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_s),
            )
        return httpx.Response(
            response.status, headers=list(response.raw_headers), stream=_ResponseBody(response)
        )

    @override
    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        """A session belongs to an event loop, so the first request opens it."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=self._tls, limit=0, keepalive_timeout=KEEPALIVE_S
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("accept", "accept-encoding", "user-agent", "content-type"),
                trust_env=False,
                max_line_size=HEADER_BYTES_MAX,
                max_field_size=HEADER_BYTES_MAX,
            )
        return self._session


class _ResponseBody(httpx.AsyncByteStream):
    """The body of a response. A body that is closed before its end closes its connection."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors():
            async for piece in self._response.content.iter_any():
                yield piece

    @override
    async def aclose(self) -> None:
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Turn errors of aiohttp into the errors that httpx has for the same cause."""
    try:
        yield
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
        raise httpx.UnsupportedProtocol(str(error)) from error
    except aiohttp.ServerTimeoutError as error:
        raise httpx.ConnectTimeout(str(error)) from error
    except aiohttp.ClientConnectorError as error:
        raise httpx.ConnectError(str(error)) from error
    except (aiohttp.ClientOSError, ConnectionError) as error:
        raise httpx.ReadError(str(error)) from error
    except aiohttp.ClientError as error:
        # The server hung up, cut the body short, or sent what is no HTTP.
        raise httpx.RemoteProtocolError(str(error)) from error
    except ValueError as error:
        # A header holds a line break. The message may quote it, and so the key.
        raise httpx.LocalProtocolError("the request has an invalid header") from error
