"""A process: HTTP for its health at once, its work as soon as its dependencies are there.

The work starts in the background, so that a missing dependency shows as `not ready` instead of a
crash loop, and is retried until it comes. SIGTERM ends the work first, then the HTTP server.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import FrameType
from typing import TypeAlias

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from typing_extensions import override

from fairlead_service.config.configuration import Config, ConfigError, load
from fairlead_service.health import Health
from fairlead_service.logs import configure
from fairlead_service.process_memory import keep_memory_private
from fairlead_service.supervise import Restarts, supervise

log = logging.getLogger(__name__)

Work: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]
"""Opens a process's work; leaving it drains and closes."""


def application(
    service: str, work: Work, health: Health, routes: Sequence[BaseRoute] = ()
) -> Starlette:
    """The ASGI application of a process: its work, its health, its own routes."""
    restarts, stop = Restarts(), asyncio.Event()
    health.depend("work", lambda: restarts.complaint)

    async def hold_open() -> None:
        async with work():
            restarts.healthy()
            log.info("ready")
            await stop.wait()
            restarts.complaint = "stopping"

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(supervise(service, hold_open, restarts=restarts, stop=stop))
        try:
            yield
        finally:
            stop.set()
            await task

    return Starlette(routes=[*health.routes(), *routes], lifespan=lifespan)


def main(service: str, env: Mapping[str, str], build: Callable[[Config], Starlette]) -> None:
    """The whole of a `__main__`: configuration, logs, application, HTTP for its health."""
    keep_memory_private()
    try:
        config = load(None, env)
    except ConfigError as error:
        sys.exit(f"fairlead-{service}: {error}")
    configure(service, config.log.level)
    try:
        app = build(config)
    except ConfigError as error:
        # Only the service can tell that this machine lacks what its configuration asks for.
        sys.exit(f"fairlead-{service}: {error}")
    serve(app, host=config.health.host, port=config.health.port)


class _Server(uvicorn.Server):
    """Announces the exit before it waits for open responses, so that long streams can end."""

    on_exit: Callable[[], None] = staticmethod(lambda: None)

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.on_exit()
        super().handle_exit(sig, frame)


def serve(
    app: Starlette,
    *,
    host: str,
    port: int,
    grace_s: float = 30.0,
    on_exit: Callable[[], None] = lambda: None,
) -> None:
    """Run until SIGTERM or SIGINT. `on_exit` runs first, so that streams can close."""
    keep_memory_private()
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        lifespan="on",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=int(grace_s),
    )
    server = _Server(config)
    server.on_exit = on_exit
    server.run()
