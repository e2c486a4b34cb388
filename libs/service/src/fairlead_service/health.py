"""Health over HTTP: `/healthz` (this process runs), `/readyz` (it can serve), `/metrics`."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

Probe: TypeAlias = Callable[[], str | None]
"""Returns why a dependency is away, or None when it is there."""


class Health:
    """The dependencies of a process, in two kinds.

    Without a dependency that it needs, a process cannot serve what it promises: it is not ready. Without one
    that it can do without, it serves a part, says so, and stays in service.
    """

    def __init__(self) -> None:
        self._needed: dict[str, Probe] = {}
        self._wanted: dict[str, Probe] = {}

    def depend(self, name: str, probe: Probe) -> None:
        """Add a dependency without which the process is not ready."""
        self._needed[name] = probe

    def want(self, name: str, probe: Probe) -> None:
        """Add a dependency without which the process is ready, but degraded."""
        self._wanted[name] = probe

    def complaints(self) -> dict[str, str]:
        """The needed dependencies that are away now, each with its reason."""
        return _ask(self._needed)

    def wanted_complaints(self) -> dict[str, str]:
        """The other dependencies that are away now, each with its reason."""
        return _ask(self._wanted)

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
        away, degraded = self.complaints(), self.wanted_complaints()
        body = {"ready": not away, "away": away, "degraded": degraded}
        return _json(503 if away else 200, body)

    async def _metrics(self, _request: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


def _ask(probes: Mapping[str, Probe]) -> dict[str, str]:
    reasons = {name: probe() for name, probe in probes.items()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _json(status: int, body: object) -> Response:
    return Response(orjson.dumps(body), status_code=status, media_type="application/json")
