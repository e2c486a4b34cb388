"""Finds sessions that should be moving and are not, and wakes them.

A crash may lose a wake, so the sweep looks for sessions with work whose row does not change. It
measures the time by the clock of this process, and wakes a session that stays still ever less often.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple

from fairlead_eventlog.connection import EventLog
from fairlead_projector import database, metrics
from fairlead_projector.database import SWEEP_LOCK, Connection, query
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_service import ids

log = logging.getLogger(__name__)

MOVING_MAX: Final = 20_000
WAKES_MAX: Final = 500
BACK_OFF_S_MAX: Final = 60.0
# Sums over tenants cost more than the rest of a sweep, and limits rise rarely.
AFFORDABLE_S: Final = 5.0
# After this many refusals the queued wake counts as lost. A living owner keeps its wake for as
# long as a turn takes, so an owned session needs more refusals.
REFUSALS_MAX: Final = 2
REFUSALS_OWNED_MAX: Final = 4


@dataclass(slots=True)
class StalledSession:
    """A session that does not move: its seq, and when to wake it next."""

    seq: int
    due_at: float
    delay_s: float
    refusals: int = 0


class StallDetector:
    """Tells which sessions with work do not move. Pure: time is an argument."""

    def __init__(self, *, age_s: float) -> None:
        self._age_s = age_s
        self._sessions: dict[Address, StalledSession] = {}

    def due(self, moving: Iterable[tuple[Address, int]], *, now: float) -> list[Address]:
        """The sessions to wake now, at most WAKES_MAX. Of each tenant, the longest due come first."""
        self._sessions = {at: self._update(at, seq, now) for at, seq in moving}
        due = sorted(
            (session.due_at, at) for at, session in self._sessions.items() if session.due_at <= now
        )
        chosen = _round_robin(at for _due_at, at in due)[:WAKES_MAX]
        for at in chosen:
            session = self._sessions[at]
            session.due_at = now + session.delay_s
            session.delay_s = min(session.delay_s * 2, BACK_OFF_S_MAX)
        return chosen

    def count_refusal(self, at: Address, *, owned: bool) -> bool:
        """Count a refused wake. True: the wake that is queued already counts as lost."""
        session = self._sessions[at]
        session.refusals += 1
        return session.refusals >= (REFUSALS_OWNED_MAX if owned else REFUSALS_MAX)

    def _update(self, at: Address, seq: int, now: float) -> StalledSession:
        session = self._sessions.get(at)
        if session is not None and session.seq == seq:
            return session
        return StalledSession(seq, due_at=now + self._age_s, delay_s=max(self._age_s, 1.0))


def _round_robin(due: Iterable[Address]) -> list[Address]:
    """The first session of each tenant, then the second of each, so that no tenant crowds out others."""
    counts: Counter[TenantId] = Counter()
    ranked: list[tuple[int, Address]] = []
    for at in due:
        ranked.append((counts[at.tenant], at))
        counts[at.tenant] += 1
    return [at for _rank, at in sorted(ranked, key=itemgetter(0))]


class TenantBudgets(NamedTuple):
    """The budgets of tenants, from the configuration of this process."""

    tenants: tuple[TenantId, ...] = ()
    costs: tuple[float | None, ...] = ()
    tokens: tuple[int | None, ...] = ()


NO_BUDGETS: Final = TenantBudgets()


async def sweep(
    dsn: str,
    eventlog: EventLog,
    *,
    interval_s: float,
    age_s: float,
    tenant_budgets: TenantBudgets = NO_BUDGETS,
    on_healthy: Callable[[], None],
) -> None:
    """Sweep until something fails. One process does this at a time; the others wait."""
    stalls, affordable, looked_at = (
        StallDetector(age_s=age_s),
        list[tuple[Address, int]](),
        -math.inf,
    )
    async with await database.connect(dsn) as connection:
        while not await database.try_lock(connection, SWEEP_LOCK):
            on_healthy()
            await asyncio.sleep(interval_s)
        while True:
            (moving, owned), now = await _load_moving(connection), time.monotonic()
            if now - looked_at >= AFFORDABLE_S:
                affordable, looked_at = await _load_affordable(connection, tenant_budgets), now
            for at in stalls.due([*moving, *affordable], now=now):
                if await eventlog.wakes.wake(at):
                    metrics.WOKEN.inc()
                    log.info("stalled session woken", extra={"session_id": at.session_id})
                elif stalls.count_refusal(at, owned=at in owned) and await eventlog.wakes.renew(at):
                    metrics.WOKEN.inc()
                    log.warning("wake lost: sent again", extra={"session_id": at.session_id})
            on_healthy()
            await asyncio.sleep(interval_s)


async def _load_affordable(
    connection: Connection, limits: TenantBudgets
) -> list[tuple[Address, int]]:
    """Sessions that rest over a budget although the budget allows more now."""
    cursor = await connection.execute(
        query("load_affordable"),
        {
            "limit": MOVING_MAX,
            "tenants": list(limits.tenants),
            "costs": list(limits.costs),
            "tokens": list(limits.tokens),
        },
    )
    return [(Address(tenant, id_), seq) for tenant, id_, seq in await cursor.fetchall()]


async def _load_moving(
    connection: Connection,
) -> tuple[list[tuple[Address, int]], frozenset[Address]]:
    """The sessions that should move, each with its seq, and the owned ones among them."""
    cursor = await connection.execute(
        query("load_moving"), {"limit": MOVING_MAX, "now": ids.now_ms()}
    )
    rows = [
        (Address(tenant, id_), seq, owned) for tenant, id_, seq, owned in await cursor.fetchall()
    ]
    return [row[:2] for row in rows], frozenset(at for at, _seq, owned in rows if owned)
