"""Runs the simulated provider inside any event loop, until told to stop."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable

import orjson
import uvicorn

from fairlead_cli.sim.app import Settings, build

GRACE_S = 2


async def serve(
    host: str,
    port: int,
    *,
    ready: Callable[[str], None],
    stop: asyncio.Event,
    settings: Settings | None = None,
) -> None:
    """Serve until `stop`. Port 0 picks a free one; `ready` is told the URL once it answers.

    The server's own loop is not used: it would take the process's signals and poll for its end.
    """
    listener = _bound(host, port)
    config = uvicorn.Config(
        build(settings or Settings(), closing=stop),
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


def run(host: str, port: int, *, announce: bool, settings: Settings | None = None) -> None:
    """Serve until SIGINT or SIGTERM. `announce` prints one JSON line with the URL when ready."""

    async def until_signalled() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        ready = _announced if announce else _silent
        await serve(host, port, ready=ready, stop=stop, settings=settings)

    asyncio.run(until_signalled())


def _bound(host: str, port: int) -> socket.socket:
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


def _announced(url: str) -> None:
    sys.stdout.write(orjson.dumps({"url": url}).decode() + "\n")
    sys.stdout.flush()


def _silent(_url: str) -> None:
    pass
