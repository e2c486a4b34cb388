"""Turns traces on, if the configuration or the standard variables of OpenTelemetry name a collector."""

import logging
import os
import socket
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

from fairlead_service.traces.config import TracesConfig
from fairlead_service.traces.tracer import Tracer, install

PATH: Final = "/v1/traces"
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
# So much of a text stands in an attribute: with content, and without.
_CONTENT_LENGTH_MAX: Final = 16_384
_LENGTH_MAX: Final = 1_024


def start_tracing(service: str, config: TracesConfig, env: Mapping[str, str]) -> None:
    """Install the tracer of this process. Without a collector nothing of OpenTelemetry is loaded."""
    install(_build(service, config, env) if is_wanted(config, env) else None)


def is_wanted(config: TracesConfig, env: Mapping[str, str]) -> bool:
    """Whether spans are recorded: a collector is named, and nobody says otherwise."""
    if not config.enabled or env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if config.endpoint is not None:
        return True
    wanted = env.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() != "none"
    return wanted and any(env.get(name) for name in _ENDPOINTS)


def _build(service: str, config: TracesConfig, env: Mapping[str, str]) -> Tracer:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - only here
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import (  # noqa: PLC0415
        OTELResourceDetector,
        Resource,
    )
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.sampling import (  # noqa: PLC0415
        ParentBased,
        TraceIdRatioBased,
    )

    from fairlead_service.traces.export import (  # noqa: PLC0415
        BoundedProcessor,
        CountedExporter,
    )
    from fairlead_service.traces.otlp import OtlpTracer  # noqa: PLC0415

    # Our exporter says in one line that the collector is away. The SDK would say it for every batch.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    own = {
        "service.name": f"fairlead-{service}",
        "service.version": version("fairlead-service"),
        "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
    }
    content = config.content or env.get(_CONTENT, "").strip().lower() == "true"
    ratio = config.sample_ratio
    provider = TracerProvider(
        sampler=None if ratio is None else ParentBased(TraceIdRatioBased(ratio)),
        resource=Resource.create(own).merge(OTELResourceDetector().detect()),
        shutdown_on_exit=False,
        span_limits=SpanLimits(
            max_span_attribute_length=_CONTENT_LENGTH_MAX if content else _LENGTH_MAX
        ),
    )
    endpoint = None if config.endpoint is None else _traces_url(config.endpoint)
    exporter = CountedExporter(OTLPSpanExporter(endpoint, timeout=config.timeout_s))
    provider.add_span_processor(
        BoundedProcessor(exporter, queue_max=config.queue_max, delay_ms=int(config.delay_s * 1000))
    )
    return OtlpTracer(provider, content=content, flush_s=config.flush_s)


def _traces_url(endpoint: str) -> str:
    base = endpoint.rstrip("/")
    return base if base.endswith(PATH) else base + PATH
