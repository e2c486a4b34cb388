"""Finds turns and calls that were lost although no process that had them was struck.

A leader's death must cost no turn: whatever was under way goes on with the next leader.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from fairlead_schema.record import Recorded
from fairlead_session.execution.recovery import INTERRUPTED_TOOL, INTERRUPTED_TURN
from tests.chaos.weather import Struck

STARTED: Final = "runner takes wakes"
# A client notices that a paused node is back a little later.
NODE_AFTER_MS: Final = 3_000
CALL_MS: Final = 30_000
# A provider may fail or refuse, and a summary may not shrink: those are outcomes, not losses.
OUTCOMES: Final = frozenset(
    {
        *("step.ended", "step.failed", "retried", "attempt.overflowed", "attempt.finished"),
        *("compaction.ended", "compaction.failed"),
    }
)


@dataclass(frozen=True, slots=True)
class RunnerLife:
    """Which process a runner id was, and when the process began that life."""

    index: int
    begun_ms: int


def find_lost_turns(
    logs: Mapping[str, list[Recorded]], struck: Iterable[Struck], lives: Mapping[str, RunnerLife]
) -> list[str]:
    """A sentence for each turn, summary or call that was lost to an election alone."""
    strikes = list(struck)
    return [
        f"{session}: {lost}"
        for session, log in logs.items()
        for lost in (*_lost_turns(log, strikes, lives), *_lost_calls(log, strikes))
    ]


def read_lives(logs: Path) -> dict[str, RunnerLife]:
    """The life behind each runner id, from what the runners logged."""
    lives: dict[str, RunnerLife] = {}
    for path in logs.glob("runner-*.log"):
        index = int(path.stem.rpartition("-")[2])
        for line in path.read_text(errors="replace").splitlines():
            if STARTED in line:
                entry = json.loads(line)
                at_ms = int(datetime.fromisoformat(entry["time"]).timestamp() * 1000)
                lives[entry["runner"]] = RunnerLife(index, at_ms)
    return lives


@dataclass(slots=True)
class _Request:
    """A request to a provider that has no outcome yet."""

    runner: str
    begun_ms: int
    stopped: bool = False
    """A person interrupted it, or the session was deleted."""


def _lost_turns(
    log: list[Recorded], struck: list[Struck], lives: Mapping[str, RunnerLife]
) -> Iterable[str]:
    owner, request = "", None
    for recorded in log:
        event: Any = recorded.event
        lost: _Request | None = None
        match event.type:
            case "execution.claimed":
                owner = event.runner
            case "interrupt.requested" | "session.purged" if request is not None:
                request.stopped = True
            case "attempt.dispatched" | "compaction.started":
                lost, request = request, _Request(owner, recorded.time)
            case "execution.recovered":
                lost, request = request, None
            case "step.failed" if event.error.message == INTERRUPTED_TURN:
                lost, request = request, None
            case _ if event.type in OUTCOMES:
                request = None
            case _:
                pass
        if lost is None or lost.stopped or _excused(lost, recorded.time, struck, lives):
            continue
        yield f"a turn of {lost.runner} was lost at {recorded.seq}: {event!r}"[:300]


def _lost_calls(log: list[Recorded], struck: list[Struck]) -> Iterable[str]:
    """Calls that settled as interrupted without an interrupt and without a dead worker."""
    stopped_ms: int | None = None
    for recorded in log:
        event: Any = recorded.event
        if event.type in {"interrupt.requested", "session.purged"}:
            stopped_ms = recorded.time
        if event.type != "tool.failed" or event.error.message != INTERRUPTED_TOOL:
            continue
        window = recorded.time - CALL_MS
        hit = any(one.name == "tools" and window <= one.until_ms for one in struck)
        if not hit and (stopped_ms is None or stopped_ms < window):
            yield f"call {event.call_id} was lost at {recorded.seq}"


def _excused(
    lost: _Request, ended_ms: int, struck: list[Struck], lives: Mapping[str, RunnerLife]
) -> bool:
    """Whether the runner itself was struck, or a node that it may have spoken through stood still."""
    life = lives.get(lost.runner)
    if life is None:
        return False
    return any(_strikes_life(one, life, lost, ended_ms) for one in struck)


def _strikes_life(one: Struck, life: RunnerLife, lost: _Request, ended_ms: int) -> bool:
    overlaps = one.from_ms <= ended_ms and one.until_ms >= lost.begun_ms
    match one.name, one.how:
        case "runner", "paused":
            return one.index == life.index and overlaps
        case "runner", _:
            return one.index == life.index and life.begun_ms <= one.from_ms <= ended_ms
        case "nats", "paused":
            return one.from_ms <= ended_ms and one.until_ms + NODE_AFTER_MS >= lost.begun_ms
        case _:
            return False
