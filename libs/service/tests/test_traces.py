"""Spans: nothing without a collector, and with one a bounded, connected, discreet record."""

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from fairlead_schema.identity.request_context import CURRENT_TRACE, trace_headers
from fairlead_service.logs import log_with
from fairlead_service.traces import names, tracer
from fairlead_service.traces.config import TracesConfig
from fairlead_service.traces.metrics import SPANS
from fairlead_service.traces.setup import is_wanted, start_tracing
from fairlead_testing.trace_collector import CollectedSpan, TraceCollector, run_collector

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
SERVICES = ("ingest", "projector", "tools", "runner", "gateway", "hooks")


@pytest.fixture
def collector() -> Iterator[TraceCollector]:
    with run_collector() as running:
        yield running
        tracer.install(None)


def begin(collector: TraceCollector, **settings: float | bool) -> None:
    config = TracesConfig.model_validate(
        {"endpoint": collector.endpoint, "delay_s": 60.0, "timeout_s": 1.0, **settings}
    )
    start_tracing("test", config, {})


def count(outcome: str) -> float:
    return float(SPANS.labels(outcome)._value.get())  # noqa: SLF001


def by_name(collector: TraceCollector) -> dict[str, CollectedSpan]:
    return {span.name: span for span in collector.spans}


@pytest.mark.parametrize("service", SERVICES)
def test_nothing_of_opentelemetry_is_loaded_while_traces_are_off(service: str) -> None:
    code = (
        f"import sys, fairlead_{service}.app\n"
        "from fairlead_service.config.configuration import load\n"
        "from fairlead_service.traces.setup import start_tracing\n"
        "start_tracing('x', load(None, {}).traces, {})\n"
        "loaded = {name for name in sys.modules if name.startswith('opentelemetry.')}\n"
        # FastStream looks whether this package is there.
        "print(sorted(loaded - {'opentelemetry.semconv'}))"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"


def test_without_a_tracer_a_span_is_one_shared_object_that_does_nothing() -> None:
    with tracer.open_span("a") as outer, tracer.open_span("b") as inner:
        inner.set({"x": 1})
        inner.fail("code")
        inner.link(CALLER)

        assert outer is inner is tracer.current_span()
        assert trace_headers() is None
        assert tracer.origin() is None


@pytest.mark.parametrize(
    ("settings", "env", "wanted"),
    [
        ({}, {}, False),
        ({"endpoint": "http://c:4318"}, {}, True),
        ({"endpoint": "http://c:4318", "enabled": False}, {}, False),
        ({"endpoint": "http://c:4318"}, {"OTEL_SDK_DISABLED": "true"}, False),
        ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({}, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        (
            {},
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"},
            False,
        ),
    ],
)
def test_a_named_collector_turns_traces_on(
    settings: dict[str, object], env: dict[str, str], wanted: object
) -> None:
    assert is_wanted(TracesConfig.model_validate(settings), env) is wanted


async def test_spans_hang_together_and_name_what_the_lines_name(collector: TraceCollector) -> None:
    begin(collector)
    with log_with(tenant="acme", session_id="ses_1"):  # noqa: SIM117 - the order is the point
        with tracer.open_verb_span("session.prompt", {"traceparent": CALLER}):
            assert tracer.origin() == CALLER
            with tracer.open_span("inner") as inner:
                carried = CURRENT_TRACE.get()
                inner.link(f"00-{'a' * 32}-{'b' * 16}-01")
    await tracer.flush()

    spans = by_name(collector)
    outer, inside = spans["session.prompt"], spans["inner"]
    assert outer.trace_id == inside.trace_id == TRACE_ID
    assert outer.parent_id == CALLER.split("-")[2]
    assert inside.parent_id == outer.span_id
    assert carried == f"00-{TRACE_ID}-{inside.span_id}-01"
    assert inside.links == ("a" * 32,)
    assert outer.attributes[names.TENANT] == "acme"
    assert outer.attributes[names.SESSION] == "ses_1"
    assert outer.service == "fairlead-test"
    assert {"service.version", "service.instance.id"} <= outer.resource.keys()


@pytest.mark.parametrize("hostile", ["", "x", CALLER.upper(), f"00-{'0' * 32}-{'0' * 16}-01"])
async def test_a_hostile_trace_begins_a_trace_of_its_own(
    hostile: str, collector: TraceCollector
) -> None:
    begin(collector)
    with tracer.open_verb_span("session.prompt", {"traceparent": hostile}):
        pass
    await tracer.flush()

    (span,) = collector.spans
    assert (span.parent_id, span.trace_id == TRACE_ID) == ("", False)


async def test_a_failure_is_a_code_and_never_a_message(collector: TraceCollector) -> None:
    begin(collector)
    with pytest.raises(ValueError, match="hunter2"), tracer.open_span("work"):
        raise ValueError("the password is hunter2")
    with pytest.raises(asyncio.CancelledError), tracer.open_span("stopped"):
        raise asyncio.CancelledError
    await tracer.flush()

    spans = by_name(collector)
    assert (spans["work"].status, spans["work"].attributes[names.ERROR]) == (2, "ValueError")
    assert spans["stopped"].status == 0
    assert "hunter2" not in str(collector.spans)


async def test_a_caller_or_a_ratio_leaves_a_trace_out(collector: TraceCollector) -> None:
    begin(collector, sample_ratio=0.0)
    with tracer.open_span("own"):
        assert tracer.origin() is None
        assert (CURRENT_TRACE.get() or "").endswith("-00")
    with tracer.open_verb_span("asked", {"traceparent": CALLER}):
        pass
    await tracer.flush()

    assert [span.name for span in collector.spans] == ["asked"]


async def test_a_collector_that_refuses_loses_spans_and_nothing_else(
    collector: TraceCollector, caplog: pytest.LogCaptureFixture
) -> None:
    failed, exported = count("failed"), count("exported")
    caplog.set_level(logging.INFO, logger="fairlead_service")
    begin(collector)
    for mood in ("refuses", "refuses", "takes"):
        collector.mood = mood
        with tracer.open_span("work"):
            pass
        await tracer.flush()

    assert (count("failed") - failed, count("exported") - exported) == (2, 1)
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "collector of traces takes no spans: they are lost until it does",
        "collector of traces takes spans again",
    ]
    assert not any(record.exc_info for record in caplog.records)


async def test_a_collector_that_stalls_fills_a_bounded_queue_and_delays_the_end_a_little(
    collector: TraceCollector,
) -> None:
    collector.mood = "stalls"
    dropped = count("dropped")
    begin(collector, queue_max=4, flush_s=0.2, timeout_s=30.0)
    for _ in range(10):
        with tracer.open_span("work"):
            pass
    began = time.monotonic()
    await tracer.flush()

    assert time.monotonic() - began < 10, "the end waits for flush_s, and not for the collector"
    assert count("dropped") - dropped >= 2
