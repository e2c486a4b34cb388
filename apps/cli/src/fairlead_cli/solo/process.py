"""One ASGI application for all parts: HTTP of the gateway, the lives and the health of all."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from fairlead_gateway.runtime import Runtime
from fairlead_service.health import Health
from fairlead_service.logs import log_as

GATEWAY = "gateway"


class SoloProcess:
    """Runs every part in one event loop, and stops all of them at once."""

    def __init__(self, parts: Mapping[str, Starlette]) -> None:
        self._gateway = parts[GATEWAY]
        self._others = {name: app for name, app in parts.items() if name != GATEWAY}
        self._stop = asyncio.Event()
        self._life = Starlette(lifespan=self._live)
        # The operations port of the gateway answers for the whole process.
        health: Health = self._gateway.state.health
        for name, app in self._others.items():
            health.depend(name, app.state.health.complaint)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._life if scope["type"] == "lifespan" else self._gateway
        await app(scope, receive, send)

    def stop(self) -> None:
        """Stop all parts, as a signal to each process does."""
        runtime: Runtime = self._gateway.state.runtime
        runtime.shutdown.set()
        self._stop.set()

    @asynccontextmanager
    async def _live(self, _app: Starlette) -> AsyncIterator[None]:
        """Run all parts. HTTP is served at once, as a gateway of its own does."""
        running = [
            asyncio.create_task(self._run_part(name, app), name=name)
            for name, app in self._others.items()
        ]
        try:
            async with self._gateway.router.lifespan_context(self._gateway):
                yield
        finally:
            self._stop.set()
            await asyncio.gather(*running)

    async def _run_part(self, name: str, app: Starlette) -> None:
        with log_as(name):
            async with app.router.lifespan_context(app):
                await self._stop.wait()
