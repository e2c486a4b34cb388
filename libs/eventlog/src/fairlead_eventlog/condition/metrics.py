"""The metrics of the log: what every process that writes to it exposes. No label holds a session."""

from typing import Final

from prometheus_client import Counter, Histogram

APPEND_SECONDS: Final = Histogram(
    "fairlead_log_append_seconds",
    "Time until the log acknowledged a commit, repeated tries included.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15),
)
APPEND_CONFLICTS: Final = Counter(
    "fairlead_log_append_conflicts",
    "Commits that another commit came before: they are decided again, or their writer is fenced.",
)
DEAD_LETTERS: Final = Counter(
    "fairlead_dead_letters",
    "Messages that nobody can handle, by where they came from.",
    ("source",),
)
# A series that begins with its first letter never increased: the alert would not see it.
for _source in ("prompt", "session", "tool", "projector"):
    DEAD_LETTERS.labels(_source)
