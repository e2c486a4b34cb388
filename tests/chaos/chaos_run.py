"""One run of chaos on a running stack: load, weather, quiet, judgement, and a report."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from fairlead_schema.record import Recorded
from fairlead_testing.session_driver import events_of
from fairlead_testing.stack import Stack
from tests.chaos.checker import judge, read_effects, transcript
from tests.chaos.feed_check import judge_feed
from tests.chaos.lost_turns import find_lost_turns, read_lives
from tests.chaos.promises import KINDS, Kind, Violation
from tests.chaos.quiet import wait_until_quiet
from tests.chaos.weather import Damage, forecast, storm
from tests.chaos.workload import Workload

NAMES: Final[dict[Kind, str]] = {
    "lost": "acknowledged lost",
    "doubled": "doubled",
    "stranded": "stranded",
    "stale": "stale writes",
    "turn": "turns lost to an election",
    "other": "other",
}
COUNTED: Final = (
    *("prompt.admitted", "attempt.dispatched", "tool.called", "child.finished"),
    *("permission.asked", "permission.replied", "question.asked", "question.replied"),
    *("interrupt.requested", "compaction.requested", "compaction.started", "compaction.ended"),
    *(
        "attempt.overflowed",
        "execution.recovered",
        "retried",
        "step.ended",
        "step.failed",
        "session.purged",
    ),
)
CHECKED: Final = (
    "receipts promoted once and in order, published prompts promoted once, accepted answers in the"
    " log, once calls run once, provider calls recorded, deletes complete, nothing left to do,"
    " rules of every log, the feed equal to the logs, turns without a struck process answered at the first request"
)


Weather: TypeAlias = Callable[[Stack, Damage], Coroutine[Any, Any, None]]
"""What happens to a stack meanwhile; it notes the damage."""


@dataclass(frozen=True, slots=True)
class ChaosPlan:
    """How long, how much, and which weather."""

    seed: int | str
    seconds: float
    nodes: int = 1
    load: float = 10.0
    """New sessions per second."""
    calm: float = 1.0

    async def storm(self, up: Stack, damage: Damage) -> None:
        """The weather of the seed."""
        schedules = forecast(self.seed, self.seconds, nodes=self.nodes, calm=self.calm)
        # A strike on a node takes as long as the cluster needs to be whole again.
        await storm(up, schedules, damage, within_s=self.seconds + 5)


@dataclass(slots=True)
class Report:
    """What a run was made of, and what it broke."""

    kinds: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    broken: list[Violation] = field(default_factory=list)
    transcripts: dict[str, str] = field(default_factory=dict)

    def add(self, other: "Report") -> None:
        self.kinds += other.kinds
        self.events += other.events
        self.sessions += other.sessions
        self.broken += other.broken
        self.transcripts |= other.transcripts

    def lines(self) -> list[str]:
        faults = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        load = ", ".join(f"{self.events[type_]} {type_}" for type_ in COUNTED)
        found = Counter(violation.kind for violation in self.broken)
        return [
            f"faults: {faults}",
            f"load: {self.sessions} sessions, {load}",
            f"checked: {CHECKED}",
            "found: " + ", ".join(f"{NAMES[kind]} {found[kind]}" for kind in KINDS),
        ]


async def run_chaos(
    up: Stack, plan: ChaosPlan, *, weather: Weather | None = None, damage: Damage | None = None
) -> Report:
    """Let sessions live through a storm, by default the one that belongs to the seed.

    `damage` is filled while the storm goes on.
    """
    work, damage = Workload(up, plan.seed), damage or Damage()
    lives = [
        work.run_session(number, begin_s=number / plan.load)
        for number in range(int(plan.seconds * plan.load))
    ]
    storming = asyncio.create_task((weather or plan.storm)(up, damage))
    try:
        ended = await asyncio.gather(*lives, return_exceptions=True)
        await storming
        await up.up.wait_ready(timeout_s=120)
        broken = [_complaint(error) for error in ended if isinstance(error, BaseException)]
        sessions = [session for session in ended if isinstance(session, str)]
        await work.close(sessions)
        logs, stranded = await wait_until_quiet(up, work.promised, sessions)
    finally:
        storming.cancel()
        await work.leave()
    stranded_sessions = {violation.session for violation in stranded}
    judged = judge(logs, work.promised, await read_effects(up))
    broken += stranded
    broken += [
        one for one in judged if one.kind != "stranded" or one.session not in stranded_sessions
    ]
    broken += await judge_feed(up, logs, work.promised.deleted)
    broken += [
        Violation("turn", *sentence.split(": ", 1))
        for sentence in find_lost_turns(logs, damage.struck, read_lives(up.up.state.logs))
    ]
    return Report(damage.kinds, _count(logs), len(logs), broken, _transcripts(logs, broken))


def _complaint(error: BaseException) -> Violation:
    """A caller that got no answer, or a wrong one."""
    if isinstance(error, asyncio.CancelledError):
        raise error
    return Violation("other", "caller", f"{type(error).__name__}: {error}")


def _count(logs: dict[str, list[Recorded]]) -> Counter[str]:
    return Counter(
        {type_: sum(len(events_of(log, type_)) for log in logs.values()) for type_ in COUNTED}
    )


def _transcripts(logs: dict[str, list[Recorded]], broken: list[Violation]) -> dict[str, str]:
    sessions = {violation.session for violation in broken} & logs.keys()
    return {session: transcript(logs[session]) for session in sessions}
