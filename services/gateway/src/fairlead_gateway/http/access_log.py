"""One log line per request, and a histogram of times by route and status class."""

import logging
import secrets
import time
from typing import Final

from prometheus_client import Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead_schema.identity.principal import Principal
from fairlead_schema.identity.request_context import CURRENT_REQUEST, parse_request_id
from fairlead_service.logs import add_fields

log = logging.getLogger(__name__)

UNMATCHED: Final = "unmatched"
_ROUTE: Final = "fairlead.route"
_PRINCIPAL: Final = "fairlead.principal"
REQUEST_ID: Final = b"x-request-id"
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


def route_of(scope: Scope) -> str:
    """The route template of a request, if one fits."""
    route: str = scope.get(_ROUTE, UNMATCHED)
    return route


def set_principal(scope: Scope, principal: Principal) -> None:
    """Record the caller of a request for its log lines."""
    scope[_PRINCIPAL] = principal
    add_fields(tenant=principal.tenant, principal=principal.name)


def principal_of(scope: Scope) -> Principal | None:
    """The caller of a request; None if the caller is not known."""
    principal: Principal | None = scope.get(_PRINCIPAL)
    return principal


class AccessLog:
    """Middleware that logs and measures every request. It never logs a query: a token may be there.

    The answer names the id under which the lines of the request are found, also those of other services.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500
        request_id = _request_id(scope)
        # Each request has a task of its own, so nothing has to be set back.
        CURRENT_REQUEST.set(request_id)

        async def send_and_measure(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _record_time(scope, status, time.perf_counter() - started)
                headers = [*message.get("headers", ()), (REQUEST_ID, request_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._app(scope, receive, send_and_measure)
        finally:
            _log_request(scope, status, time.perf_counter() - started)


def _request_id(scope: Scope) -> str:
    """The id that the caller gave, if lines can hold it, else a new one."""
    given = next((value for name, value in scope["headers"] if name == REQUEST_ID), b"")
    return parse_request_id(given.decode("latin-1")) or f"req_{secrets.token_hex(8)}"


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
