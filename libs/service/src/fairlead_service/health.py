"""Health over HTTP: `/healthz` (this process runs), `/readyz` (its dependencies answer), `/metrics`."""

from collections.abc import Callable
from typing import TypeAlias

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

Probe: TypeAlias = Callable[[], str | None]
"""Says why something is away, or None when all is well."""


class Health:
    """What this process depends on. It is ready when no probe has a complaint."""

    def __init__(self) -> None:
        self._probes: dict[str, Probe] = {}

    def depend(self, name: str, probe: Probe) -> None:
        """Be ready only while the probe has no complaint."""
        self._probes[name] = probe

    def complaints(self) -> dict[str, str]:
        """Everything that is away now, with its reason."""
        found = {name: probe() for name, probe in self._probes.items()}
        return {name: reason for name, reason in found.items() if reason is not None}

    def routes(self) -> list[Route]:
        """The routes every process serves."""
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
