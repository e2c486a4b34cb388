"""Sends a request to the address that was checked, under the name that the URL has."""

import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from fairlead_service.web import guard

if TYPE_CHECKING:
    import httpx

CONNECT_S: Final = 10.0


_FAILURES: Final = {
    "ReadError": "it ended the connection",
    "WriteError": "it ended the connection",
    "RemoteProtocolError": "what it answers is not HTTP, or ends too early",
}
"""The failures of httpx without a cause of their own. httpx is read at its first use."""


class RequestFailed(Exception):
    """A server could not be reached, or its answer could not be read. The text is for people."""


@asynccontextmanager
async def open_request(
    method: str,
    target: guard.Target,
    headers: Mapping[str, str],
    *,
    private: bool,
    content: bytes | None = None,
) -> AsyncIterator["httpx.Response"]:
    """Send a request to the checked address. The body is still unread; redirects are not followed.

    Raises AddressRefused, RequestFailed.
    """
    import httpx  # noqa: PLC0415

    address = await guard.resolve_address(target, private=private)
    parts = urlsplit(target.url)
    host = f"[{address}]" if ":" in address else address
    url = urlunsplit((parts.scheme, f"{host}:{target.port}", parts.path, parts.query, ""))
    timeout = httpx.Timeout(None, connect=CONNECT_S)
    request_headers = {**headers, "host": target.authority, "accept-encoding": "gzip, deflate"}
    connections = _Connections()
    try:
        async with httpx.AsyncClient(
            trust_env=False, verify=_tls_context(), timeout=timeout, follow_redirects=False
        ) as client:
            request = client.build_request(method, url, headers=request_headers, content=content)
            # The certificate must match the host name, not the address.
            request.extensions |= {"sni_hostname": target.host, "trace": connections.note}
            response = await client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
    except (httpx.HTTPError, httpx.InvalidURL, zlib.error) as error:
        raise RequestFailed(f"{target.host} cannot be read: {_explain(error)}") from error
    finally:
        await connections.close()


class _Connections:
    """What httpx connected. It forgets a connection if its time is over before TLS begins."""

    def __init__(self) -> None:
        self._streams: list[Any] = []

    async def note(self, event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self._streams.append(info["return_value"])

    async def close(self) -> None:
        for stream in self._streams:
            await stream.aclose()


def _explain(error: BaseException) -> str:
    """What went wrong, for people: the first cause that says it."""
    cause: BaseException | None = error
    while cause is not None:
        match cause:
            case ssl.SSLCertVerificationError():
                return f"its certificate is refused ({cause.verify_message})"
            case ssl.SSLError():
                return f"TLS failed ({cause.reason})"
            case ConnectionRefusedError():
                return "it refuses the connection"
            case ConnectionResetError():
                return "it ended the connection"
            case TimeoutError():
                return f"it takes no connection within {CONNECT_S:g} s"
            case _:
                pass
        cause = cause.__cause__ or cause.__context__
    name = type(error).__name__
    return _FAILURES.get(name, name)


@cache
def _tls_context() -> ssl.SSLContext:
    """The certificates that count, read once: to read them takes longer than a request."""
    import httpx  # noqa: PLC0415

    return httpx.create_ssl_context(trust_env=False)
