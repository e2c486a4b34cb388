"""The metrics of the projector. Labels are bounded: a shard, never a session."""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

EVENTS: Final = Counter("fairlead_projector_events", "Events applied to the read models.")
BROKEN: Final = Counter("fairlead_projector_broken", "Commits that broke their session.")
BATCH: Final = Histogram(
    "fairlead_projector_batch_commits",
    "Commits per transaction.",
    buckets=(1, 2, 5, 10, 25, 50, 100, 250, 500, 1000),
)
APPLY: Final = Histogram("fairlead_projector_apply_seconds", "Time to apply one batch.")
LAG: Final = Gauge(
    "fairlead_projector_lag_commits", "How far a shard's rows are behind its log.", ["shard"]
)
FENCED: Final = Counter("fairlead_projector_fenced", "Writes refused because a shard moved on.")
FED: Final = Counter("fairlead_projector_feed_events", "Events published to the public feed.")
UNREADABLE: Final = Counter(
    "fairlead_projector_feed_unreadable",
    "Commits the feed could not read: it holds their sessions.",
)
FEED_HELD: Final = Gauge(
    "fairlead_projector_feed_held", "Sessions that a shard's feed holds.", ["shard"]
)
STREAM_BYTES: Final = Gauge("fairlead_stream_bytes", "Bytes that a stream holds.", ["stream"])
STREAM_BYTES_MAX: Final = Gauge(
    "fairlead_stream_bytes_max", "Bytes that a stream may hold; 0 means no limit.", ["stream"]
)
PURGED: Final = Counter("fairlead_projector_purged", "Sessions that were purged.")
WOKEN: Final = Counter("fairlead_projector_wakes", "Wakes for stalled sessions.")
MOVING: Final = Gauge(
    "fairlead_projector_sweep_sessions", "Sessions that should move, as the last lap saw them."
)
