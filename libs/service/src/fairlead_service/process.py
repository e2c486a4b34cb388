"""A process: HTTP for its health at once, its work as soon as its dependencies are there.

The work starts in the background, so that a missing dependency shows as `not ready` instead of a
crash loop, and is retried until it comes. SIGTERM ends the work first, then the HTTP server.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import FrameType
from typing import TypeAlias

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from typing_extensions import override

from fairlead_service.config.configuration import Config, ConfigError, load
from fairlead_service.health import Health
from fairlead_service.logs import configure

log = logging.getLogger(__name__)

Work: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]
"""Opens a process's work; leaving it drains and closes."""

RETRY_S_MAX = 2.0


def application(work: Work, health: Health, routes: Sequence[BaseRoute] = ()) -> Starlette:
    """The ASGI application of a process: its work, its health, its own routes."""
    state = _Supervised(work)
    health.depend("work", state.complaint)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(state.run())
        try:
            yield
        finally:
            state.stop.set()
            with suppress(asyncio.CancelledError):
                await task

    return Starlette(routes=[*health.routes(), *routes], lifespan=lifespan)


class _Supervised:
    """Keeps the work open until told to stop; a failing start is tried again."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.stop = asyncio.Event()
        self._complaint: str | None = "starting"

    def complaint(self) -> str | None:
        return self._complaint

    async def run(self) -> None:
        delay = 0.1
        while not self.stop.is_set():
            try:
                async with self._work():
                    self._complaint = None
                    log.info("ready")
                    await self.stop.wait()
                    self._complaint = "stopping"
            except Exception as error:  # noqa: BLE001 - a process edge: report, wait, try again
                self._complaint = f"{type(error).__name__}: {error}"
                log.warning("cannot work yet", extra={"reason": self._complaint})
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await self.stop.wait()
                delay = min(delay * 2, RETRY_S_MAX)


def main(service: str, env: Mapping[str, str], build: Callable[[Config], Starlette]) -> None:
    """The whole of a `__main__`: configuration, logs, application, HTTP for its health."""
    try:
        config = load(None, env)
    except ConfigError as error:
        sys.exit(f"fairlead-{service}: {error}")
    configure(service, config.log.level)
    try:
        app = build(config)
    except ConfigError as error:
        # Only the service itself could tell that this machine cannot do what is asked.
        sys.exit(f"fairlead-{service}: {error}")
    serve(app, host=config.health.host, port=config.health.port)


class _Server(uvicorn.Server):
    """Tells long-lived responses to end before the server waits for them."""

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
    """Run until SIGTERM or SIGINT. `on_exit` is told first, so that streams can close."""
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
