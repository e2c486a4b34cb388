"""Pings and nudges in memory."""

from math import inf

from fairlead_eventlog.process_life import (
    Nudge,
    OnNudge,
    PingResult,
)
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.positions import nudge_headers, parse_nudge_headers
from fairlead_schema.subjects import Address


class MemoryLiveness:
    """The instances that answer. A paused instance is silent."""

    def __init__(self) -> None:
        self.alive: set[str] = set()
        self.paused: set[str] = set()
        self.connection_age_s = inf
        self._on_nudge: dict[str, OnNudge] = {}

    async def start_answering(self, instance: str, on_nudge: OnNudge = lambda _nudge: None) -> None:
        self.alive.add(instance)
        self._on_nudge[instance] = on_nudge

    async def nudge(
        self,
        instance: str,
        at: Address,
        *,
        position: int | None = None,
        commit: CommitHint | None = None,
    ) -> None:
        if instance in self._on_nudge:
            self._on_nudge[instance](
                Nudge(at, *parse_nudge_headers(nudge_headers(position, commit)))
            )

    async def ping(self, instance: str, *, timeout_s: float) -> PingResult:
        assert timeout_s > 0
        if instance not in self.alive:
            return "gone"
        return "silent" if instance in self.paused else "alive"

    def connected_s(self) -> float:
        return self.connection_age_s
