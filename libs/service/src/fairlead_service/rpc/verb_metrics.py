"""The metrics of a verb without FastStream, in the series that FastStream has for all other verbs."""

from typing import Final, Protocol

from faststream.prometheus.container import MetricsContainer
from prometheus_client import REGISTRY

from fairlead_schema.errors import Refused

PREFIX: Final = "fairlead_rpc"
APP: Final = "fairlead"


class RequestCount(Protocol):
    """What a service counts of a verb besides the metrics of all verbs."""

    def receive(self) -> None:
        """A request was read. Nobody has looked at it yet."""

    def answer(self, refused: Refused | None) -> None:
        """The request has its answer."""


class VerbMetrics:
    """Counts the requests of one verb: how many, how they ended, how long they took.

    FastStream's sizes and requests under way are left out: they cost as much as the rest again.
    """

    def __init__(self, subject: str) -> None:
        container = MetricsContainer(REGISTRY, metrics_prefix=PREFIX, custom_label_names=())
        labels = {"app_name": APP, "broker": "nats", "handler": subject}
        self._received = container.received_messages_total.labels(**labels)
        self._seconds = container.received_processed_messages_duration_seconds.labels(**labels)
        processed = container.received_processed_messages_total
        self._answered = processed.labels(**labels, status="acked")
        self._refused = processed.labels(**labels, status="error")

    def count(self, elapsed_ns: int, refused: Refused | None) -> None:
        """Count one request that was answered."""
        self._received.inc()
        self._seconds.observe(elapsed_ns / 1e9)
        (self._answered if refused is None else self._refused).inc()
