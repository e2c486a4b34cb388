"""How providers are reached: one HTTP client per distinct setting, so that connections are reused."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import httpx

from fairlead_llm.errors import NoTransport


@dataclass(frozen=True, slots=True)
class Transport:
    """TLS, proxy and HTTP version. `ca_file` is trusted instead of the public authorities."""

    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    verify: bool = True
    proxy: str | None = None
    http2: bool = False


Clients: TypeAlias = Callable[[Transport], httpx.AsyncClient]
"""Gives the client of a transport, always the same one. Raises NoTransport."""


@asynccontextmanager
async def clients(*, connections_kept: int) -> AsyncIterator[Clients]:
    """Clients made as they are asked for, and closed together."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=connections_kept)
    made: dict[Transport, httpx.AsyncClient] = {}
    async with AsyncExitStack() as stack:

        def of(transport: Transport) -> httpx.AsyncClient:
            if transport not in made:
                made[transport] = _client(transport, limits)
                stack.push_async_callback(made[transport].aclose)
            return made[transport]

        yield of


def _client(transport: Transport, limits: httpx.Limits) -> httpx.AsyncClient:
    try:
        return httpx.AsyncClient(
            verify=_trust(transport), proxy=transport.proxy, http2=transport.http2, limits=limits
        )
    except (ImportError, OSError, ValueError) as error:
        # An ssl error is an OSError that does not say which file it read.
        raise NoTransport(f"{_named(transport)}: {error}") from error


def _trust(transport: Transport) -> ssl.SSLContext | bool:
    if not (transport.ca_file or transport.client_cert) and transport.verify:
        return True
    context = (
        ssl.create_default_context(cafile=transport.ca_file)
        if transport.ca_file
        else httpx.create_ssl_context()
    )
    if not transport.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if transport.client_cert:
        context.load_cert_chain(transport.client_cert, transport.client_key)
    return context


def _named(transport: Transport) -> str:
    """The settings in use; a proxy's address may hold a password, so only that there is one."""
    told = {
        "ca_file": transport.ca_file,
        "client_cert": transport.client_cert,
        "client_key": transport.client_key,
        "proxy": "…" if transport.proxy else None,
        "http2": "on" if transport.http2 else None,
    }
    return ", ".join(f"{name} {value}" for name, value in told.items() if value)
