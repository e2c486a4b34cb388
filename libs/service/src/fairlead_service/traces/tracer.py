"""Spans for every service. Without a configured collector, all of this does nothing.

This module imports nothing of OpenTelemetry: `otlp.py` is loaded only when traces are on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, Self, TypeAlias

from fairlead_schema.identity.request_context import TRACE_HEADER, parse_trace
from fairlead_service.logs import current_fields
from fairlead_service.traces import names

SpanKind: TypeAlias = Literal["internal", "server", "client", "consumer"]
Value: TypeAlias = str | bool | int | float | Sequence[str]
Attributes: TypeAlias = Mapping[str, Value | None]
"""An attribute without a value is left out."""


class TraceSpan(Protocol):
    """A part of the work. It is the current span of its task for the length of a `with` block."""

    @property
    def live(self) -> bool:
        """Whether anybody records the span. What is costly to say is said only then."""

    def set(self, attributes: Attributes) -> None:
        """Say more about the work."""

    def fail(self, code: str) -> None:
        """Say that the work failed, by a code. No message: it may hold a secret."""

    def rename(self, name: str) -> None:
        """Give the span a name that was not known when it began."""

    def link(self, trace: str | None) -> None:
        """Name a span of another trace, or of an earlier owner, to which the work belongs."""

    def end(self) -> None:
        """End the span before its block. A second end does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: object
    ) -> None: ...


class Tracer(Protocol):
    """Opens spans and sends them."""

    @property
    def content(self) -> bool:
        """Whether spans may hold what people and models say."""

    def open_span(
        self, name: str, kind: SpanKind, parent: str | None, attributes: Attributes
    ) -> TraceSpan:
        """A span below `parent`, else below the current span of the task."""

    def current(self) -> TraceSpan:
        """The span of the task."""

    def origin(self) -> str | None:
        """The trace to which later owners of the current work link; None if it is not sampled."""

    async def flush(self) -> None:
        """Send what waits, within a bounded time."""


class NoSpan:
    """A span that nobody records."""

    __slots__ = ()
    live: Final = False

    def set(self, attributes: Attributes) -> None: ...
    def fail(self, code: str) -> None: ...
    def rename(self, name: str) -> None: ...
    def link(self, trace: str | None) -> None: ...
    def end(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None: ...


NO_SPAN: Final = NoSpan()
NOTHING: Final[Attributes] = {}


@dataclass(slots=True)
class _Process:
    tracer: Tracer | None = None


_PROCESS: Final = _Process()


def install(tracer: Tracer | None) -> None:
    """Set the tracer of this process, once, before its application is built."""
    _PROCESS.tracer = tracer


def is_tracing() -> bool:
    """Whether this process records spans."""
    return _PROCESS.tracer is not None


def records_content() -> bool:
    """Whether spans may hold what people and models say."""
    return _PROCESS.tracer is not None and _PROCESS.tracer.content


def open_span(
    name: str,
    kind: SpanKind = "internal",
    *,
    parent: str | None = None,
    attributes: Attributes = NOTHING,
) -> TraceSpan:
    """A span of this process, for a `with` block."""
    tracer = _PROCESS.tracer
    return NO_SPAN if tracer is None else tracer.open_span(name, kind, parent, attributes)


def open_consumer_span(name: str, trace: str | None, attributes: Attributes = NOTHING) -> TraceSpan:
    """A span for a message of a queue, below the span of whoever left the message."""
    return open_span(name, "consumer", parent=trace, attributes=attributes)


def open_verb_span(verb: str, headers: Mapping[str, str] | None) -> TraceSpan:
    """A span for a request over NATS, below the span of its sender."""
    if _PROCESS.tracer is None:
        return NO_SPAN
    trace = None if headers is None else parse_trace(headers.get(TRACE_HEADER))
    attributes = {names.RPC_SYSTEM: "nats", names.RPC_METHOD: verb}
    return open_span(verb, "server", parent=trace, attributes=attributes)


def current_span() -> TraceSpan:
    """The span of the task, to say more about it."""
    return NO_SPAN if _PROCESS.tracer is None else _PROCESS.tracer.current()


def span_fields() -> dict[str, str]:
    """What the log lines of the task say of its work, as attributes."""
    fields = current_fields()
    return {name: fields[field] for field, name in names.OF_LOG_FIELDS.items() if field in fields}


def origin() -> str | None:
    """The trace that the log keeps, so that whoever takes the work over links to it."""
    return None if _PROCESS.tracer is None else _PROCESS.tracer.origin()


async def flush() -> None:
    """Send what waits before the process ends. A collector that stalls delays it by a bounded time."""
    if _PROCESS.tracer is not None:
        await _PROCESS.tracer.flush()
