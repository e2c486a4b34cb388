"""Which sessions with work stand still, and when the sweep looks at each next. Pure: time is an argument."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from fairlead_eventlog.process_life import PingResult
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address

WAKES_MAX: Final = 500
BACK_OFF_S_MAX: Final = 60.0
# After this many refusals the queued wake counts as lost. A silent owner may be paused: its wake has a
# deadline of its own. An owner that answers keeps its wake for as long as a turn may take.
REFUSALS_MAX: Final[Mapping[PingResult | None, int]] = MappingProxyType(
    {None: 2, "gone": 2, "silent": 4, "alive": 60}
)


@dataclass(slots=True)
class StalledSession:
    """A session that does not move: its seq, and when to wake it next."""

    at: Address
    seq: int
    due_at: float
    delay_s: float
    lap: int
    refusals: int = 0


class StallDetector:
    """Watches sessions with work, a page at a time, and tells which of them do not move.

    A lap is one pass over all of them. What a lap has not seen is at rest, and is forgotten.
    """

    def __init__(self, *, age_s: float) -> None:
        self._age_s = age_s
        self._sessions: dict[Address, StalledSession] = {}
        self.seen: list[Address] = []
        """The sessions of the pages since the last round."""
        self._lap = 0

    def watch(self, moving: Iterable[tuple[Address, int]], *, now: float) -> None:
        """Note a page of sessions with their seqs."""
        for at, seq in moving:
            session = self._sessions.get(at)
            if session is None or session.seq != seq:
                delay_s = max(self._age_s, 1.0)
                session = StalledSession(at, seq, now + self._age_s, delay_s, self._lap)
                self._sessions[at] = session
            session.lap = self._lap
            self.seen.append(at)

    def end_lap(self) -> int:
        """Forget the sessions that this lap has not seen; the answer is how many it has seen."""
        self._sessions = {at: item for at, item in self._sessions.items() if item.lap == self._lap}
        self._lap += 1
        return len(self._sessions)

    def take_due(self, *, now: float) -> list[Address]:
        """The sessions to wake now, at most WAKES_MAX, of those seen since the last call.

        Half are those due for longest, half those looked at least often, so that many sessions which
        wait for long hide none that has just lost its wake. Tenants take turns in both halves.
        """
        sessions = (self._sessions[at] for at in self.seen)
        due = [session for session in sessions if session.due_at <= now]
        self.seen = []
        # Both sorts keep the order of what is alike, so the second goes by `due_at` too.
        due.sort(key=attrgetter("due_at"))
        longest = _take_turns(due)[: WAKES_MAX // 2]
        newest = _take_turns(sorted(due, key=attrgetter("delay_s")))
        chosen = list(dict.fromkeys((*longest, *newest)))[:WAKES_MAX]
        for at in chosen:
            session = self._sessions[at]
            session.due_at = now + session.delay_s
            session.delay_s = min(session.delay_s * 2, BACK_OFF_S_MAX)
        return chosen

    def retry_soon(self, at: Address, *, now: float) -> None:
        """Look again as if for the first time, because the wake could not be sent."""
        session = self._sessions[at]
        session.delay_s = max(self._age_s, 1.0)
        session.due_at = now + session.delay_s

    def count_refusal(self, at: Address, owner_life: PingResult | None) -> bool:
        """Count a refused wake. True: the wake that is queued already counts as lost."""
        session = self._sessions[at]
        session.refusals += 1
        return session.refusals >= REFUSALS_MAX[owner_life]


def _take_turns(sessions: Iterable[StalledSession]) -> list[Address]:
    """The first session of each tenant, then the second of each, so that no tenant crowds out others."""
    by_tenant: dict[TenantId, list[Address]] = {}
    for session in sessions:
        of_tenant = by_tenant.setdefault(session.at.tenant, [])
        # No round takes more, even of one tenant.
        if len(of_tenant) < WAKES_MAX:
            of_tenant.append(session.at)
    turns = chain.from_iterable(zip_longest(*by_tenant.values()))
    return [at for at in turns if at is not None]
