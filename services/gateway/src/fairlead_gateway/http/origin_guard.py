"""Middleware that refuses requests of foreign web pages, and answers those of configured origins."""

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead_gateway.http.answers import error_answer
from fairlead_gateway.http.origin_rules import (
    OriginRules,
    allowed_origin,
    browser_headers,
    complaint,
)
from fairlead_schema.errors import Forbidden
from fairlead_service.audit import audit

_PAGES: Final = frozenset({"/", "/asks", "/ops", "/login", "/login/callback"})
_PREFLIGHT: Final = {
    "access-control-allow-methods": "GET, POST, PATCH, DELETE",
    "access-control-allow-headers": (
        "authorization, content-type, idempotency-key, last-event-id,"
        " x-opencode-directory, x-opencode-workspace"
    ),
    "access-control-max-age": "600",
}
_READABLE: Final = "fairlead-log, fairlead-stale, retry-after, x-request-id"
"""Headers of answers that a page of another origin needs: the log's name belongs to every cursor."""


class OriginGuard:
    """Applies the origin rules to every request, before any route sees it."""

    def __init__(self, app: ASGIApp, rules: OriginRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = browser_headers(scope["headers"])
        reason = complaint(self._rules, headers, opens_page=_opens_page(scope))
        if reason is not None:
            audit("http.origin", "refused", resource=scope["path"], reason=reason)
            refusal = Forbidden(reason)
            await error_answer(refusal.status, refusal.body)(scope, receive, send)
            return
        origin = allowed_origin(self._rules, headers)
        if origin is None:
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS":
            answer = Response(status_code=204, headers=_PREFLIGHT | _origin_headers(origin))
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, _let_origin_read(send, origin))


def _opens_page(scope: Scope) -> bool:
    """Whether a browser opens a page of the console in a tab of its own."""
    path, sent = scope["path"], dict(scope["headers"])
    return (
        scope["method"] == "GET"
        and sent.get(b"sec-fetch-mode") == b"navigate"
        and sent.get(b"sec-fetch-dest") == b"document"
        and (path in _PAGES or path.startswith("/s/"))
    )


def _origin_headers(origin: str) -> dict[str, str]:
    # Credentials of the browser are never allowed: a page must send a token of its own.
    return {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": _READABLE,
        "vary": "origin",
    }


def _let_origin_read(send: Send, origin: str) -> Send:
    async def send_with_origin(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_origin_headers(origin))
        await send(message)

    return send_with_origin
