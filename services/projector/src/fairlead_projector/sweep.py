"""Finds sessions that should be moving and are not, and wakes them.

Wakes are hints that a crash may lose; this is the net below them. A row that does not
change is judged by this process's own clock, and one that waits for a person is woken ever less.
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
# Sums over tenants cost more than the rest of a sweep, and limits are raised rarely.
AFFORDABLE_S: Final = 5.0
# A wake that is refused so often stands behind one that nobody is given. A living owner holds its
# own for as long as a turn takes, so there it takes longer to tell.
REFUSALS_MAX: Final = 2
REFUSALS_OWNED_MAX: Final = 4


@dataclass(slots=True)
class Watched:
    """A session that stands still: at which seq, and when it is woken next."""

    seq: int
    due_at: float
    delay_s: float
    refusals: int = 0


class Watch:
    """Which of the moving sessions stand still. Pure: time is an argument."""

    def __init__(self, *, age_s: float) -> None:
        self._age_s = age_s
        self._watched: dict[Address, Watched] = {}

    def due(self, moving: Iterable[tuple[Address, int]], *, now: float) -> list[Address]:
        """The sessions to wake now, the longest due of each tenant first, at most WAKES_MAX."""
        self._watched = {at: self._look(at, seq, now) for at, seq in moving}
        due = sorted((one.due_at, at) for at, one in self._watched.items() if one.due_at <= now)
        chosen = _in_turn(at for _due_at, at in due)[:WAKES_MAX]
        for at in chosen:
            one = self._watched[at]
            one.due_at = now + one.delay_s
            one.delay_s = min(one.delay_s * 2, BACK_OFF_S_MAX)
        return chosen

    def lost(self, at: Address, *, owned: bool) -> bool:
        """A wake was refused. Whether the one that is there may be lost, as nothing moves."""
        one = self._watched[at]
        one.refusals += 1
        return one.refusals >= (REFUSALS_OWNED_MAX if owned else REFUSALS_MAX)

    def _look(self, at: Address, seq: int, now: float) -> Watched:
        known = self._watched.get(at)
        if known is not None and known.seq == seq:
            return known
        return Watched(seq, due_at=now + self._age_s, delay_s=max(self._age_s, 1.0))


def _in_turn(due: Iterable[Address]) -> list[Address]:
    """One of each tenant, then the next of each: a crowd leaves room for another's single one."""
    before: Counter[TenantId] = Counter()
    ranked: list[tuple[int, Address]] = []
    for at in due:
        ranked.append((before[at.tenant], at))
        before[at.tenant] += 1
    return [at for _rank, at in sorted(ranked, key=itemgetter(0))]


class Allowed(NamedTuple):
    """What each tenant with a limit may use, as this process was told when it started."""

    tenants: tuple[TenantId, ...] = ()
    costs: tuple[float | None, ...] = ()
    tokens: tuple[int | None, ...] = ()


NO_LIMITS: Final = Allowed()


async def sweep(
    dsn: str,
    eventlog: EventLog,
    *,
    interval_s: float,
    age_s: float,
    allowed: Allowed = NO_LIMITS,
    well: Callable[[], None],
) -> None:
    """Sweep for ever; one process at a time. Raises what stopped it; start again then."""
    watch, affordable, looked_at = Watch(age_s=age_s), list[tuple[Address, int]](), -math.inf
    async with await database.connect(dsn) as connection:
        while not await database.try_lock(connection, SWEEP_LOCK):
            well()
            await asyncio.sleep(interval_s)
        while True:
            (moving, owned), now = await _moving(connection), time.monotonic()
            if now - looked_at >= AFFORDABLE_S:
                affordable, looked_at = await _affordable(connection, allowed), now
            for at in watch.due([*moving, *affordable], now=now):
                if await eventlog.wakes.wake(at):
                    metrics.WOKEN.inc()
                    log.info("woke a session that stood still", extra={"session_id": at.session_id})
                elif watch.lost(at, owned=at in owned) and await eventlog.wakes.renew(at):
                    metrics.WOKEN.inc()
                    log.warning("renewed a lost wake", extra={"session_id": at.session_id})
            well()
            await asyncio.sleep(interval_s)


async def _affordable(connection: Connection, allowed: Allowed) -> list[tuple[Address, int]]:
    """Sessions at rest over a limit that was raised since: another process wrote them."""
    cursor = await connection.execute(
        query("load_affordable"),
        {
            "limit": MOVING_MAX,
            "tenants": list(allowed.tenants),
            "costs": list(allowed.costs),
            "tokens": list(allowed.tokens),
        },
    )
    return [(Address(tenant, id_), seq) for tenant, id_, seq in await cursor.fetchall()]


async def _moving(
    connection: Connection,
) -> tuple[list[tuple[Address, int]], frozenset[Address]]:
    """The sessions that should move, each with its seq, and those among them that are owned."""
    cursor = await connection.execute(
        query("load_moving"), {"limit": MOVING_MAX, "now": ids.now_ms()}
    )
    rows = [
        (Address(tenant, id_), seq, owned) for tenant, id_, seq, owned in await cursor.fetchall()
    ]
    return [row[:2] for row in rows], frozenset(at for at, _seq, owned in rows if owned)
