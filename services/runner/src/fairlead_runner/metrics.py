"""What a runner counts. Labels are bounded: never a session id."""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

TURNS: Final = Counter("fairlead_turns", "Provider turns, by how they ended.", ("end",))
DRAINS: Final = Counter("fairlead_drains", "Drains, by how they ended.", ("end",))
PREFIX_BREAKS: Final = Counter(
    "fairlead_prefix_breaks",
    "Requests that do not begin like the one before in their epoch, by what changed.",
    ("source",),
)
COMPACTIONS: Final = Counter(
    "fairlead_compactions",
    "Compactions that were asked for or begun, by cause and outcome.",
    ("cause", "outcome"),
)
SAVED: Final = Counter(
    "fairlead_compaction_saved_tokens", "Estimated tokens that compactions took out of requests."
)
PRUNINGS: Final = Counter("fairlead_prunings", "Requests that pruning alone made small enough.")
ESTIMATE_ERROR: Final = Histogram(
    "fairlead_estimate_error",
    "How far the estimate of a request was off what its provider counted, as a part of that.",
    ("kind",),
    buckets=(0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0),
)
CACHE_TOKENS: Final = Counter(
    "fairlead_cache_tokens",
    "Prompt tokens that providers served from their cache, and those that unbroken prefixes let expect.",
    ("kind",),
)
DRAINING: Final = Gauge("fairlead_draining", "Sessions being drained now.")
EPOCHS: Final = Counter("fairlead_context_epochs", "Context epochs that began.")
CONTEXT_UPDATES: Final = Counter(
    "fairlead_context_updates", "Changes of the context that were told inside an epoch."
)
BASELINE_BYTES: Final = Histogram(
    "fairlead_baseline_bytes",
    "How long the baseline of a new epoch is.",
    buckets=(256, 1024, 4096, 16384, 65536, 262144, 1048576),
)
