"""Runs the simulated provider inside any event loop until its stop event is set."""

import asyncio
import socket
from collections.abc import Callable

import uvicorn

from fairlead_cli.sim.app import SimSettings, build_app

GRACE_S = 2


async def serve(
    host: str,
    port: int,
    *,
    ready: Callable[[str], None],
    stop: asyncio.Event,
    settings: SimSettings | None = None,
) -> None:
    """Serve until `stop` is set. Port 0 picks a free port; `ready` gets the URL of the open server.

    `uvicorn.Server.serve` is not used: it takes over the process's signals and polls for its end.
    """
    listener = _bind(host, port)
    config = uvicorn.Config(
        build_app(settings or SimSettings(), closing=stop),
        lifespan="off",
        log_config=None,
        access_log=False,
        date_header=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        ready(_url(listener))
        await stop.wait()
    finally:
        await server.shutdown(sockets=[listener])


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The event loop turns off Nagle's delay only on sockets that name their protocol.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
