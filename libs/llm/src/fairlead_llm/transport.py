"""HTTP clients for providers: one client per transport setting, so that connections are reused."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import httpx

from fairlead_llm.aiohttp_transport import AiohttpTransport
from fairlead_llm.errors import InvalidTransport


@dataclass(frozen=True, slots=True)
class Transport:
    """TLS, proxy and HTTP version. `ca_file` replaces the public certificate authorities."""

    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    verify: bool = True
    proxy: str | None = None
    http2: bool = False


Clients: TypeAlias = Callable[[Transport], httpx.AsyncClient]
"""Returns the one client of a transport. Raises InvalidTransport."""


@asynccontextmanager
async def clients(*, keepalive_max: int) -> AsyncIterator[Clients]:
    """Open each client at its first use, and close all of them at the end."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=keepalive_max)
    by_transport: dict[Transport, httpx.AsyncClient] = {}
    async with AsyncExitStack() as stack:

        def client_for(transport: Transport) -> httpx.AsyncClient:
            if transport not in by_transport:
                by_transport[transport] = _open_client(transport, limits)
                stack.push_async_callback(by_transport[transport].aclose)
            return by_transport[transport]

        yield client_for


def _open_client(transport: Transport, limits: httpx.Limits) -> httpx.AsyncClient:
    try:
        tls = _tls_context(transport)
        if transport.proxy is None and not transport.http2:
            tls.set_alpn_protocols(["http/1.1"])
            return httpx.AsyncClient(transport=AiohttpTransport(tls), trust_env=False)
        return httpx.AsyncClient(
            verify=tls,
            proxy=transport.proxy,
            http2=transport.http2,
            limits=limits,
            # As everywhere in Fairlead: only the configuration names a proxy.
            trust_env=False,
        )
    except (ImportError, OSError, ValueError) as error:
        # An SSL error is an OSError without the name of the file.
        raise InvalidTransport(f"{_describe(transport)}: {error}") from error


def _tls_context(transport: Transport) -> ssl.SSLContext:
    context = (
        ssl.create_default_context(cafile=transport.ca_file)
        if transport.ca_file
        else httpx.create_ssl_context(trust_env=False)
    )
    if not transport.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if transport.client_cert:
        context.load_cert_chain(transport.client_cert, transport.client_key)
    return context


def _describe(transport: Transport) -> str:
    """The settings in use, without the proxy's address, because it may hold a password."""
    settings = {
        "ca_file": transport.ca_file,
        "client_cert": transport.client_cert,
        "client_key": transport.client_key,
        "proxy": "…" if transport.proxy else None,
        "http2": "on" if transport.http2 else None,
    }
    return ", ".join(f"{name} {value}" for name, value in settings.items() if value)
