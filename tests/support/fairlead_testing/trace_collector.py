"""A collector of traces that a test owns: takes OTLP over HTTP, decodes it, and can refuse or stall."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, TypeAlias

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from typing_extensions import override

Mood: TypeAlias = Literal["takes", "refuses", "stalls"]
WAIT_S = 60.0


@dataclass(frozen=True)
class CollectedSpan:
    """One span as it came."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    links: tuple[str, ...]
    """The ids of the traces to which the span links."""
    status: int
    resource: dict[str, Any]


@dataclass
class TraceCollector:
    """What came so far, and how the next batch is treated."""

    endpoint: str = ""
    mood: Mood = "takes"
    requests: int = 0
    spans: list[CollectedSpan] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def trace(self, trace_id: str) -> list[CollectedSpan]:
        return [span for span in self.spans if span.trace_id == trace_id]

    def named(self, name: str) -> list[CollectedSpan]:
        return [span for span in self.spans if span.name.startswith(name)]

    async def wait_for(self, *names: str) -> None:
        """Wait until a span of each name came."""
        await self.wait_until(lambda: all(self.named(name) for name in names))

    async def wait_until(self, came: Callable[[], bool]) -> None:
        """Wait until what a test needs came."""
        async with asyncio.timeout(WAIT_S):
            while not came():
                await asyncio.sleep(0.05)


@contextmanager
def run_collector() -> Iterator[TraceCollector]:
    """A collector for the length of a block."""
    collector = TraceCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = decompress(body)
            collector.requests += 1
            if collector.mood == "stalls":
                collector.released.wait(WAIT_S)
                return
            if collector.mood == "takes":
                collector.spans += _decode(body)
            self.send_response(200 if collector.mood == "takes" else 400)
            self.send_header("content-length", "0")
            self.end_headers()

        @override
        def log_message(self, *_args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.released.set()
        server.shutdown()
        server.server_close()


def _decode(body: bytes) -> list[CollectedSpan]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        _span(span, _values(group.resource.attributes))
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def _span(span: Any, resource: dict[str, Any]) -> CollectedSpan:  # noqa: ANN401 - generated classes
    return CollectedSpan(
        resource["service.name"],
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _values(span.attributes),
        tuple(link.trace_id.hex() for link in span.links),
        span.status.code,
        resource,
    )


def _values(pairs: Any) -> dict[str, Any]:  # noqa: ANN401 - generated classes
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:  # noqa: ANN401 - generated classes
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)
