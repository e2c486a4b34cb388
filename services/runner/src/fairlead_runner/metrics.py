"""What a runner counts. Labels are bounded: never a session id."""

from typing import Final

from prometheus_client import Counter, Gauge

TURNS: Final = Counter("fairlead_turns", "Provider turns, by how they ended.", ("end",))
DRAINS: Final = Counter("fairlead_drains", "Drains, by how they ended.", ("end",))
DRAINING: Final = Gauge("fairlead_draining", "Sessions being drained now.")
