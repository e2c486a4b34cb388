"""A process: HTTP for its health at once, its work as soon as its dependencies are there.

The work starts in the background, so that a missing dependency shows as `not ready` instead of a
crash loop, and is retried until it comes. SIGTERM ends the work first, then the HTTP server.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TypeAlias

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import ASGIApp
from typing_extensions import override

from fairlead_schema.model import build_models
from fairlead_service.config.configuration import Config, ConfigError, load
from fairlead_service.health import Health
from fairlead_service.http_protocol import ConnectionLimits, DeadlineProtocol
from fairlead_service.logs import configure
from fairlead_service.loop_lag import LoopLag
from fairlead_service.process_memory import keep_memory_private
from fairlead_service.supervise import Restarts, supervise
from fairlead_service.traces import tracer
from fairlead_service.traces.setup import start_tracing

log = logging.getLogger(__name__)

Work: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]
"""Opens a process's work; leaving it drains and closes."""


@dataclass(frozen=True, slots=True)
class OperationsPort:
    """Where a process serves its health and metrics, apart from the port of its callers."""

    host: str
    port: int


def application(
    service: str,
    work: Work,
    health: Health,
    routes: Sequence[BaseRoute] = (),
    *,
    operations: OperationsPort | None = None,
) -> Starlette:
    """The ASGI application of a process: its work, its health, its own routes.

    With `operations`, health and metrics have a port of their own, and no other port serves them.
    The application keeps its health in `state.health`.
    """
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
            async with _serve_operations(health, operations), LoopLag():
                yield
        finally:
            stop.set()
            await task
            # Here and not at the very end: the signal ends the process behind this block.
            await tracer.flush()

    own = [] if operations else health.routes()
    app = Starlette(routes=[*own, *routes], lifespan=lifespan)
    app.state.health = health
    return app


@asynccontextmanager
async def _serve_operations(
    health: Health, operations: OperationsPort | None
) -> AsyncIterator[None]:
    """Serve health and metrics for the length of a block."""
    if operations is None:
        yield
        return
    config = uvicorn.Config(
        Starlette(routes=list(health.routes())),
        host=operations.host,
        port=operations.port,
        lifespan="off",
        log_config=None,
        access_log=False,
        http=DeadlineProtocol,
        ws="none",
    )
    server = _OperationsServer(config)
    task = asyncio.create_task(server.serve())
    try:
        yield
    finally:
        server.should_exit = True
        await task


def main(service: str, env: Mapping[str, str], build: Callable[[Config], Starlette]) -> None:
    """The whole of a `__main__`: configuration, logs, application, HTTP for its health."""
    keep_memory_private()
    try:
        config = load(None, env)
    except ConfigError as error:
        sys.exit(f"fairlead-{service}: {error}")
    configure(service, config.log.level)
    start_tracing(service, config.traces, env)
    try:
        app = build(config)
    except ConfigError as error:
        # Only the service can tell that this machine lacks what its configuration asks for.
        sys.exit(f"fairlead-{service}: {error}")
    serve(app, host=config.health.host, port=config.health.port)


class _OperationsServer(uvicorn.Server):
    """A second server of a process. The first one handles the signals."""

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Server(uvicorn.Server):
    """Announces the exit before it waits for open responses, so that long streams can end."""

    on_exit: Callable[[], None] = staticmethod(lambda: None)

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.on_exit()
        super().handle_exit(sig, frame)


def serve(
    app: ASGIApp,
    *,
    host: str,
    port: int,
    grace_s: float = 30.0,
    on_exit: Callable[[], None] = lambda: None,
    limits: ConnectionLimits | None = None,
) -> None:
    """Run until SIGTERM or SIGINT. `on_exit` runs first, so that streams can close."""
    keep_memory_private()
    build_models()
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        lifespan="on",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=int(grace_s),
        http=DeadlineProtocol if limits is None else DeadlineProtocol.with_limits(limits),
        # A web socket would pass by the rules for web pages.
        ws="none",
        limit_concurrency=None if limits is None else limits.connections_max,
        server_header=False,
    )
    server = _Server(config)
    server.on_exit = on_exit
    server.run()
