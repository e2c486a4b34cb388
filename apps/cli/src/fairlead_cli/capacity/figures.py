"""The measured figures behind the capacity. `fairlead bench capacity` measures them on another machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SERVERS: Final = ("nats", "postgres")


@dataclass(frozen=True, slots=True)
class Figures:
    """What one act costs each process, and what stays of it. Times are of one core."""

    prompt_ms: Mapping[str, float]
    """A prompt and the step that answers it."""
    call_ms: Mapping[str, float]
    """A call of a tool and the step after it, without the work of the tool itself."""
    fragment_us: Mapping[str, float]
    """A live fragment of an answer with one watcher."""
    watcher_us: float
    """A live fragment for each further watcher, in the gateway."""
    prompt_bytes: Mapping[str, float]
    """What stays of a prompt and its step, without their text: in log, feed and Postgres."""
    call_bytes: Mapping[str, float]
    text_factor: Mapping[str, float]
    """How often each byte of text stays in a store."""
    process_mb: float
    """A process of a service at rest, alone on its machine."""
    session_kb: float
    """A session that is in memory, in one process."""
    watcher_kb: float
    """An open event stream, in the gateway."""
    commits_per_s: float
    """Commits that one nats-server syncs to disk, 32 at once. The disk decides."""
    rebuild_events_per_s: float
    """Events that one process projects when the rows are built anew."""


MEASURED: Final = Figures(
    prompt_ms={
        "ingest": 1.3,
        "runner": 3.8,
        "tools": 0.4,
        "projector": 1.9,
        "gateway": 1.5,
        "nats": 2.4,
        "postgres": 0.6,
    },
    call_ms={
        "ingest": 0.6,
        "runner": 2.6,
        "tools": 1.9,
        "projector": 1.1,
        "gateway": 0.7,
        "nats": 1.8,
        "postgres": 0.3,
    },
    fragment_us={"runner": 100, "nats": 70, "gateway": 110, "projector": 15},
    watcher_us=3.0,
    prompt_bytes={"log": 3_200, "feed": 5_400, "postgres": 9_200},
    call_bytes={"log": 2_900, "feed": 4_500, "postgres": 4_000},
    text_factor={"log": 1.5, "feed": 1.5, "postgres": 3.1},
    process_mb=95,
    session_kb=70,
    watcher_kb=52,
    commits_per_s=5_000,
    rebuild_events_per_s=30_000,
)
