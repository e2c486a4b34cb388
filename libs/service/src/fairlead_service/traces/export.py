"""Sends spans in the background: a bounded queue, a count for each span, one log line for a failure."""

import logging
import threading
from collections.abc import Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from typing_extensions import override

from fairlead_service.traces.metrics import SPANS

log = logging.getLogger(__name__)

BATCH_MAX: Final = 512


class CountedExporter(SpanExporter):
    """Counts what a collector takes. The first failure of a row is a warning, the end of it a line."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._failing = False
        self._waiting = 0
        self._lock = threading.Lock()

    def admit(self, limit: int) -> bool:
        """Take a place for one more span; False if too many wait."""
        with self._lock:
            if self._waiting >= limit:
                return False
            self._waiting += 1
            return True

    @override
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with self._lock:
            self._waiting -= len(spans)
        try:
            result = self._inner.export(spans)
        except Exception:  # noqa: BLE001 - an edge: no failure of a collector disturbs the service
            result = SpanExportResult.FAILURE
        failed = result is not SpanExportResult.SUCCESS
        SPANS.labels("failed" if failed else "exported").inc(len(spans))
        if failed and not self._failing:
            log.warning("collector of traces takes no spans: they are lost until it does")
        elif self._failing and not failed:
            log.info("collector of traces takes spans again")
        self._failing = failed
        return result

    @override
    def shutdown(self) -> None:
        self._inner.shutdown()

    @override
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)


class BoundedProcessor(BatchSpanProcessor):
    """The SDK's processor, which drops and counts a span that finds no room."""

    def __init__(self, exporter: CountedExporter, *, queue_max: int, delay_ms: int) -> None:
        super().__init__(
            exporter,
            max_queue_size=queue_max,
            schedule_delay_millis=delay_ms,
            max_export_batch_size=min(BATCH_MAX, queue_max),
        )
        self._counted = exporter
        self._limit = queue_max

    @override
    def on_end(self, span: ReadableSpan) -> None:
        if span.context is None or not span.context.trace_flags.sampled:
            return
        if self._counted.admit(self._limit):
            super().on_end(span)
        else:
            SPANS.labels("dropped").inc()
