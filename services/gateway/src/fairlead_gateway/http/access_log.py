"""One log line per request, and a histogram of times by route and status class."""

import logging
import time
from typing import Final

from prometheus_client import Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead_schema.identity.principal import Principal

log = logging.getLogger(__name__)

UNMATCHED: Final = "unmatched"
_ROUTE: Final = "fairlead.route"
_PRINCIPAL: Final = "fairlead.principal"
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


def set_principal(scope: Scope, principal: Principal) -> None:
    """Record the caller of a request for its log line."""
    scope[_PRINCIPAL] = principal


def principal_of(scope: Scope) -> Principal | None:
    """The caller of a request; None if the caller is not known."""
    principal: Principal | None = scope.get(_PRINCIPAL)
    return principal


class AccessLog:
    """Middleware that logs and measures every request. It never logs a query: a token may be there."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
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
    principal = principal_of(scope)
    if principal is not None:
        extra["principal"] = principal.name
    log.info("request", extra=extra)
