"""Spans by the SDK of OpenTelemetry, sent by OTLP over HTTP. Only loaded when traces are on."""

import asyncio
import threading
from asyncio import CancelledError
from contextlib import suppress
from contextvars import ContextVar, Token
from typing import Final, Self

from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace import Span as RawSpan
from opentelemetry.trace import SpanKind as RawKind

from fairlead_schema.identity.request_context import CURRENT_TRACE
from fairlead_service.logs import current_part
from fairlead_service.traces import names
from fairlead_service.traces.tracer import NO_SPAN, Attributes, SpanKind, TraceSpan, span_fields

_KINDS: Final[dict[SpanKind, RawKind]] = {
    "internal": RawKind.INTERNAL,
    "server": RawKind.SERVER,
    "client": RawKind.CLIENT,
    "consumer": RawKind.CONSUMER,
}
_SPAN: Final[ContextVar["LiveSpan | None"]] = ContextVar("fairlead_span", default=None)
_NO_PARENT: Final = Context()


class LiveSpan:
    """A span that is recorded, unless the sampler left its trace out."""

    __slots__ = ("_ended", "_raw", "_tokens", "context", "origin", "trace")

    def __init__(self, raw: RawSpan, origin: str | None) -> None:
        self._raw = raw
        self._tokens: tuple[Token[LiveSpan | None], Token[str | None]] | None = None
        self._ended = False
        self.trace = _encode(raw.get_span_context())
        # A killed process never sends its open spans, so others link to what came from outside.
        self.origin = origin or self.trace
        self.context = set_span_in_context(raw, _NO_PARENT)

    @property
    def live(self) -> bool:
        return self._raw.is_recording()

    def set(self, attributes: Attributes) -> None:
        if self._raw.is_recording():
            for name, value in attributes.items():
                if value is not None:
                    self._raw.set_attribute(name, value)

    def fail(self, code: str) -> None:
        self._raw.set_attribute(names.ERROR, code)
        self._raw.set_status(Status(StatusCode.ERROR, code))

    def rename(self, name: str) -> None:
        self._raw.update_name(name)

    def link(self, trace: str | None) -> None:
        if trace is not None and trace != self.trace:
            self._raw.add_link(_decode(trace))

    def end(self) -> None:
        if not self._ended:
            self._ended = True
            self._raw.end()

    def __enter__(self) -> Self:
        self._tokens = _SPAN.set(self), CURRENT_TRACE.set(self.trace)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: object
    ) -> None:
        if self._tokens is not None:
            _SPAN.reset(self._tokens[0])
            CURRENT_TRACE.reset(self._tokens[1])
        if kind is not None:
            if issubclass(kind, CancelledError):
                self.set({names.CANCELLED: True})
            else:
                self.fail(getattr(error, "tag", None) or kind.__name__)
        self.end()


class OtlpTracer:
    """Opens spans of one process."""

    def __init__(self, provider: TracerProvider, *, content: bool, flush_s: float) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("fairlead")
        self._flush_s = flush_s
        self.content = content

    def open_span(
        self, name: str, kind: SpanKind, parent: str | None, attributes: Attributes
    ) -> LiveSpan:
        context, origin = _find_parent(parent)
        given = {key: value for key, value in attributes.items() if value is not None}
        known, part = {**span_fields(), **given}, current_part()
        if part is not None:
            known[names.PART] = part
        raw = self._tracer.start_span(name, context, _KINDS[kind], known)
        return LiveSpan(raw, origin)

    def current(self) -> TraceSpan:
        return _SPAN.get() or NO_SPAN

    def origin(self) -> str | None:
        span = _SPAN.get()
        return span.origin if span is not None and span.live else None

    async def flush(self) -> None:
        """Send what waits. A daemon thread does it, because the process must not wait for a stall."""
        loop, flushed = asyncio.get_running_loop(), asyncio.Event()

        def send() -> None:
            self._provider.force_flush()
            with suppress(RuntimeError):  # The loop may have ended by then.
                loop.call_soon_threadsafe(flushed.set)

        threading.Thread(target=send, name="flush traces", daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._flush_s):
                await flushed.wait()


def _find_parent(parent: str | None) -> tuple[Context, str | None]:
    """The context of a new span, and the origin that it inherits."""
    span, current = _SPAN.get(), CURRENT_TRACE.get()
    if parent is None and span is not None and span.trace == current:
        return span.context, span.origin
    remote = parent or current
    if remote is None:
        return _NO_PARENT, None
    return set_span_in_context(NonRecordingSpan(_decode(remote)), _NO_PARENT), remote


def _encode(context: SpanContext) -> str:
    sampled = context.trace_flags & TraceFlags.SAMPLED
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{sampled:02x}"


def _decode(trace: str) -> SpanContext:
    _version, trace_id, span_id, flags = trace.split("-")
    return SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16))
    )
