"""One span per HTTP request. Only there while traces are on."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead_gateway.http.access_log import UNMATCHED, route_of
from fairlead_schema.identity.request_context import TRACE_HEADER, parse_trace
from fairlead_service.traces import names
from fairlead_service.traces.tracer import open_span, span_fields

SERVER_ERROR = 500
STREAM = b"text/event-stream"


class TraceRequests:
    """Middleware around all others, so that their lines name the trace. A stream ends its span at its start."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        attributes = {names.METHOD: method}
        with open_span(method, "server", parent=_trace_of(scope), attributes=attributes) as span:

            async def send_and_note(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status, route = message["status"], route_of(scope)
                    span.set({names.STATUS: status, names.ROUTE: route, **span_fields()})
                    if route != UNMATCHED:
                        span.rename(f"{method} {route}")
                    if status >= SERVER_ERROR:
                        span.fail(str(status))
                    if (
                        dict(message.get("headers", ()))
                        .get(b"content-type", b"")
                        .startswith(STREAM)
                    ):
                        span.end()
                await send(message)

            await self._app(scope, receive, send_and_note)


def _trace_of(scope: Scope) -> str | None:
    """The trace that the caller names. Of several or malformed ones none counts."""
    named = [value for name, value in scope["headers"] if name == TRACE_HEADER.encode()]
    return parse_trace(named[0].decode("latin-1")) if len(named) == 1 else None
