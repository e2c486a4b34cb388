"""Sends a request to the address that was checked, under the name that the URL has."""

import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from fairlead_service.web import guard

if TYPE_CHECKING:
    import ssl

    import httpx

CONNECT_S: Final = 10.0


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
    try:
        async with httpx.AsyncClient(
            trust_env=False, verify=_tls_context(), timeout=timeout, follow_redirects=False
        ) as client:
            request = client.build_request(method, url, headers=request_headers, content=content)
            # The certificate must match the host name, not the address.
            request.extensions["sni_hostname"] = target.host
            response = await client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
    except (httpx.HTTPError, httpx.InvalidURL, zlib.error) as error:
        raise RequestFailed(f"{target.host} cannot be read: {type(error).__name__}") from error


@cache
def _tls_context() -> "ssl.SSLContext":
    """The certificates that count, read once: to read them takes longer than a request."""
    import httpx  # noqa: PLC0415

    return httpx.create_ssl_context(trust_env=False)
