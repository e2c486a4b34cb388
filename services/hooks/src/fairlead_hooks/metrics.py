"""The metrics of the hooks service. Labels are bounded: an outcome, never a webhook or a tenant."""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

ATTEMPTS: Final = Counter(
    "fairlead_webhook_attempts", "Attempts to deliver an event, by what they came to.", ["outcome"]
)
DELIVERED: Final = Counter("fairlead_webhook_deliveries", "Events that a receiver accepted.")
GIVEN_UP: Final = Counter("fairlead_webhook_given_up", "Deliveries that were given up.")
SECONDS: Final = Histogram(
    "fairlead_webhook_attempt_seconds",
    "How long an attempt took.",
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30),
)
LANES: Final = Gauge("fairlead_webhook_lanes", "Webhooks that this process delivers to.")
RUNS: Final = Counter(
    "fairlead_schedule_runs", "Due times of schedules, by what became of them.", ["outcome"]
)
LATE: Final = Histogram(
    "fairlead_schedule_late_seconds",
    "How long after its due time a prompt had its answer.",
    buckets=(0.1, 0.5, 1, 2, 5, 10, 60, 600, 3600),
)
SCHEDULES: Final = Gauge("fairlead_schedules", "Schedules that are not paused.")
