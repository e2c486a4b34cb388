"""What a runner counts. Labels are bounded: never a session id."""

from typing import Final

from prometheus_client import Counter, Gauge

TURNS: Final = Counter("fairlead_turns", "Provider turns, by how they ended.", ("end",))
DRAINS: Final = Counter("fairlead_drains", "Drains, by how they ended.", ("end",))
PREFIX_BREAKS: Final = Counter(
    "fairlead_prefix_breaks",
    "Requests that do not begin like the one before in their epoch, by what changed.",
    ("source",),
)
DRAINING: Final = Gauge("fairlead_draining", "Sessions being drained now.")
