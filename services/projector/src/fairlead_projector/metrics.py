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
FEED_LAG: Final = Gauge(
    "fairlead_projector_feed_lag_commits",
    "How far the checkpoint of a shard's public feed is behind its log.",
    ["shard"],
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
WAITING: Final = Gauge(
    "fairlead_queue_waiting_messages", "Messages of a queue that nobody has taken.", ["queue"]
)
WAKE_AGE: Final = Gauge(
    "fairlead_wake_oldest_age_seconds", "How long the oldest wake has waited for a runner."
)
TOOL_REQUEST_AGE: Final = Gauge(
    "fairlead_tool_request_oldest_age_seconds",
    "How long the oldest tool request of a pool has waited for a worker.",
    ["pool"],
)
PROMPT_AGE: Final = Gauge(
    "fairlead_prompt_oldest_age_seconds", "How long the oldest published prompt waits for ingest."
)
BACKUP_COMPLETE: Final = Gauge(
    "fairlead_backup_complete_timestamp_seconds",
    "When the last complete backup began; 0 means that there was none.",
)
BACKUP_FAILED: Final = Gauge(
    "fairlead_backup_failed_timestamp_seconds",
    "When the last backup that failed began; 0 means that none failed.",
)
ASKS: Final = Gauge(
    "fairlead_asks_waiting", "Permissions and questions that wait for people.", ["kind"]
)
PURGED: Final = Counter("fairlead_projector_purged", "Sessions that were purged.")
STORED: Final = Counter(
    "fairlead_projector_stored", "Sessions whose log was erased, because a file holds them."
)
WOKEN: Final = Counter("fairlead_projector_wakes", "Wakes for stalled sessions.")
MOVING: Final = Gauge(
    "fairlead_projector_sweep_sessions", "Sessions that should move, as the last lap saw them."
)
