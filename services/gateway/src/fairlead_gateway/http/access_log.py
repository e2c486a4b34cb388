"""One log line per request, and a histogram of times by route and status class."""

import logging
import time
from typing import Final

from prometheus_client import Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

UNMATCHED: Final = "unmatched"
_ROUTE: Final = "fairlead.route"
_QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})

REQUEST_SECONDS: Final = Histogram(
    "fairlead_http_request_seconds",
    "Seconds until the answer to a request began.",
    ["method", "route", "status"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


def set_route(scope: Scope, template: str) -> None:
    """Record the route template of a request for its log line and its metric."""
    scope[_ROUTE] = template


class AccessLog:
    """Middleware that logs and measures every request except health checks and metrics."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _QUIET:
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def send_and_measure(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _record_time(scope, status, time.perf_counter() - started)
            await send(message)

        try:
            await self._app(scope, receive, send_and_measure)
        finally:
            _log_request(scope, status, time.perf_counter() - started)


def _record_time(scope: Scope, status: int, seconds: float) -> None:
    method = scope["method"] if scope["method"] in _METHODS else "other"
    route = scope.get(_ROUTE, UNMATCHED)
    REQUEST_SECONDS.labels(method, route, f"{status // 100}xx").observe(seconds)


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    extra = {
        "method": scope["method"],
        "route": scope.get(_ROUTE, UNMATCHED),
        "status": status,
        "ms": round(seconds * 1000, 1),
    }
    log.info("request", extra=extra)
