"""Health over HTTP: `/healthz` (this process runs), `/readyz` (its dependencies answer), `/metrics`."""

from collections.abc import Callable
from typing import TypeAlias

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

Probe: TypeAlias = Callable[[], str | None]
"""Returns why a dependency is away, or None when it is there."""


class Health:
    """The dependencies of a process. The process is ready while no probe returns a complaint."""

    def __init__(self) -> None:
        self._probes: dict[str, Probe] = {}

    def depend(self, name: str, probe: Probe) -> None:
        """Add a dependency."""
        self._probes[name] = probe

    def complaints(self) -> dict[str, str]:
        """The dependencies that are away now, each with its reason."""
        reasons = {name: probe() for name, probe in self._probes.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def complaint(self) -> str | None:
        """All complaints in one line; None when the process is ready."""
        return "; ".join(f"{name}: {why}" for name, why in self.complaints().items()) or None

    def routes(self) -> list[Route]:
        """The routes that every process serves."""
        return [
            Route("/healthz", self._healthz),
            Route("/readyz", self._readyz),
            Route("/metrics", self._metrics),
        ]

    async def _healthz(self, _request: Request) -> Response:
        return _json(200, {"healthy": True})

    async def _readyz(self, _request: Request) -> Response:
        away = self.complaints()
        return _json(503 if away else 200, {"ready": not away, "away": away})

    async def _metrics(self, _request: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


def _json(status: int, body: object) -> Response:
    return Response(orjson.dumps(body), status_code=status, media_type="application/json")
