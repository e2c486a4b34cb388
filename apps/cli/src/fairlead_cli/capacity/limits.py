"""The limits of each part, and what to do when a stack comes near one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_cli.capacity.agent_load import UTILISATION
from fairlead_cli.capacity.figures import MEASURED
from fairlead_cli.checks import Finding
from fairlead_eventlog.condition.waiting_work import QueueAge

CONNECTIONS_SHARE: Final = 0.8


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: what is counted, how much of it is comfortable, and what helps beyond that."""

    name: str
    counted: str
    comfortable: float
    advice: str


COMMITS: Final = Limit(
    "commits",
    "commits a second of the whole log",
    MEASURED.commits_per_s * UTILISATION,
    "spread the shards over more nats-servers or faster disks; run `fairlead bench` there",
)
SHARD: Final = Limit(
    "shard",
    "commits a second of one shard",
    MEASURED.commits_per_s * UTILISATION / 2,
    "its leader is the limit: move leaders apart (`nats stream cluster step-down`)",
)
PROJECTION: Final = Limit(
    "projection",
    "commits that are not projected yet",
    MEASURED.rebuild_events_per_s,
    "start more projectors (up to eight), or give Postgres a faster disk",
)
WAKES: Final = Limit("wakes", "seconds that a wake waits", 5.0, "start more runners")
CALLS: Final = Limit("calls", "seconds that a tool request waits", 10.0, "start more tool workers")
INTAKE: Final = Limit("intake", "seconds that a prompt waits", 5.0, "start more ingests")
CONNECTIONS: Final = Limit(
    "connections",
    "share of the connections that Postgres allows",
    CONNECTIONS_SHARE,
    "raise max_connections, or run fewer gateways with a smaller gateway.pool_connections_max",
)
LIMITS: Final = (COMMITS, SHARD, PROJECTION, WAKES, CALLS, INTAKE, CONNECTIONS)
_QUEUES: Final = {"WAKES": WAKES, "TOOLS": CALLS, "PROMPTS": INTAKE}


@dataclass(frozen=True, slots=True)
class StackLoad:
    """What a running stack does now."""

    shard_commits_per_s: Sequence[float]
    unprojected: int | None
    """Commits behind the slowest checkpoint; None where nobody may read the checkpoints."""
    queues: Sequence[QueueAge]
    connections_share: float | None


def compare_with_limits(load: StackLoad) -> list[Finding]:
    """A warning for each limit that is near, else one line that says how far away they are."""
    found = {
        COMMITS: sum(load.shard_commits_per_s),
        SHARD: max(load.shard_commits_per_s, default=0.0),
        PROJECTION: load.unprojected,
        CONNECTIONS: load.connections_share,
    }
    for queue in load.queues:
        limit = _QUEUES[queue.stream]
        found[limit] = max(queue.oldest_age_s, found.get(limit) or 0.0)
    near = [
        Finding("capacity", "warn", f"{_show(value)} {limit.counted}", limit.advice)
        for limit, value in found.items()
        if value is not None and value > limit.comfortable
    ]
    if near:
        return near
    rate = sum(load.shard_commits_per_s)
    detail = f"{rate:,.0f} commits a second of about {COMMITS.comfortable:,.0f}; nothing waits long"
    return [Finding("capacity", "ok", detail)]


def _show(value: float) -> str:
    return f"{value:,.2f}" if value < 1 else f"{value:,.0f}"
