"""The metric of traces."""

from typing import Final

from prometheus_client import Counter

SPANS: Final = Counter(
    "fairlead_trace_spans",
    "Sampled spans by outcome: exported, failed (the collector did not take them), dropped (no room).",
    ["outcome"],
)
