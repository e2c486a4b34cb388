"""Finds sessions that should be moving and are not, and wakes them.

A crash may lose a wake, so the sweep looks for sessions with work whose row does not change. It
measures the time by the clock of this process, and wakes a session that stays still ever less often.
It reads bounded pages in the order of an index, and goes on where the last round stopped.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.process_life import PingResult, confirmed_life
from fairlead_projector import database, metrics
from fairlead_projector.database import SWEEP_LOCK, Connection, query
from fairlead_projector.stalls import StallDetector
from fairlead_schema.ids import RunnerId, TenantId
from fairlead_schema.subjects import Address
from fairlead_service import ids

log = logging.getLogger(__name__)

PAGE_ROWS: Final = 2_000
PAGES_MAX: Final = 10
AFFORDABLE_ROWS: Final = 100
AFFORDABLE_PAGES_MAX: Final = 100
PING_TIMEOUT_S: Final = 0.5
PINGS_MAX: Final = 64
# So many tenants in a row whose wakes fail mean that the queue itself is away.
FAILED_TENANTS_MAX: Final = 10


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
    async with await database.connect(dsn) as connection:
        while not await database.try_lock(connection, SWEEP_LOCK):
            on_healthy()
            await asyncio.sleep(interval_s)
        moving = MovingSessions(connection)
        affordable = AffordableSessions(connection, tenant_budgets)
        waker = StallWaker(eventlog)
        for_moving, for_affordable = StallDetector(age_s=age_s), StallDetector(age_s=age_s)
        while True:
            now = time.monotonic()
            moving_rows = await moving.watch(for_moving, now=now)
            affordable_rows = await affordable.watch(for_affordable, now=now)
            await waker.wake_due(for_moving, moving_rows, now=now)
            await waker.wake_due(for_affordable, affordable_rows, now=now)
            on_healthy()
            await asyncio.sleep(interval_s)


class SweptRow(NamedTuple):
    """How far the log of a session is projected, and who owns the session."""

    position: int
    owner: RunnerId | None = None


class _PageKey(NamedTuple):
    """The place in the order of the index after which a page begins."""

    look_at: int
    tenant: TenantId
    session_id: str


_FIRST_PAGE: Final = _PageKey(-1, "", "")


class MovingSessions:
    """The sessions that should move, in laps of bounded pages."""

    def __init__(self, connection: Connection, *, page_rows: int = PAGE_ROWS) -> None:
        self._connection = connection
        self._page_rows = page_rows
        self._after = _FIRST_PAGE

    async def watch(self, stalls: StallDetector, *, now: float) -> dict[Address, SweptRow]:
        """Show the next pages to the detector; the answer has their rows."""
        swept: dict[Address, SweptRow] = {}
        for _page in range(PAGES_MAX):
            rows = await self._load_page()
            stalls.watch([(Address(row[0], row[1]), row[2]) for row in rows], now=now)
            swept |= {Address(row[0], row[1]): SweptRow(row[3], row[4]) for row in rows}
            if len(rows) < self._page_rows:
                metrics.MOVING.set(stalls.end_lap())
                self._after = _FIRST_PAGE
                break
            tenant, session_id, *_rest, look_at = rows[-1]
            self._after = _PageKey(look_at, tenant, session_id)
        return swept

    async def _load_page(self) -> list[tuple[TenantId, str, int, int, RunnerId | None, int]]:
        parameters = {**self._after._asdict(), "now": ids.now_ms(), "limit": self._page_rows}
        cursor = await self._connection.execute(query("load_moving"), parameters, prepare=False)
        return await cursor.fetchall()


class AffordableSessions:
    """The sessions that rest over a budget although the budget allows more now, in laps of pages."""

    def __init__(self, connection: Connection, budgets: TenantBudgets) -> None:
        self._connection = connection
        self._budgets = budgets
        self._pages: deque[tuple[TenantId, str]] = deque()
        """What is left of the lap: tenants, each with the session after which its page begins."""

    async def watch(self, stalls: StallDetector, *, now: float) -> dict[Address, SweptRow]:
        """Show the next pages to the detector; the answer has their rows. Tenants take turns."""
        swept: dict[Address, SweptRow] = {}
        if not self._pages:
            stalls.end_lap()
            self._pages.extend((tenant, "") for tenant in await self._load_tenants())
        for _page in range(min(len(self._pages), AFFORDABLE_PAGES_MAX)):
            tenant, after = self._pages.popleft()
            rows = await self._load_page(tenant, after)
            stalls.watch([(Address(row[0], row[1]), row[2]) for row in rows], now=now)
            swept |= {Address(row[0], row[1]): SweptRow(row[3]) for row in rows}
            if len(rows) == AFFORDABLE_ROWS:
                self._pages.append((tenant, rows[-1][1]))
        return swept

    async def _load_tenants(self) -> list[TenantId]:
        limits = {name: list(values) for name, values in self._budgets._asdict().items()}
        cursor = await self._connection.execute(query("load_affordable_tenants"), limits)
        return [tenant for (tenant,) in await cursor.fetchall()]

    async def _load_page(
        self, tenant: TenantId, after: str
    ) -> list[tuple[TenantId, str, int, int]]:
        parameters = {"tenant": tenant, "session_id": after, "limit": AFFORDABLE_ROWS}
        cursor = await self._connection.execute(query("load_affordable"), parameters, prepare=False)
        return await cursor.fetchall()


class StallWaker:
    """Wakes sessions that stand still. A tenant whose wakes fail does not stop the others."""

    def __init__(self, eventlog: EventLog) -> None:
        self._eventlog = eventlog

    async def wake_due(
        self, stalls: StallDetector, rows: Mapping[Address, SweptRow], *, now: float
    ) -> None:
        """Wake every due session. Raises LogError if no wake is taken."""
        due = stalls.take_due(now=now)
        lives = await self._ask_owners(rows[at].owner for at in due)
        failures: dict[TenantId, LogError] = {}
        any_succeeded = False
        for at in due:
            if at.tenant not in failures:
                try:
                    await self._wake(at, rows[at], stalls, lives.get(rows[at].owner))
                    any_succeeded = True
                    continue
                except LogError as error:
                    failures[at.tenant] = error
            stalls.retry_soon(at, now=now)
            if len(failures) >= FAILED_TENANTS_MAX and not any_succeeded:
                break
        _report(failures)
        if failures and not any_succeeded:
            raise next(iter(failures.values()))

    async def _ask_owners(
        self, owners: Iterable[RunnerId | None]
    ) -> dict[RunnerId | None, PingResult]:
        """Whether each runner lives. One runner owns many sessions and is asked once."""
        slots, liveness = asyncio.Semaphore(PINGS_MAX), self._eventlog.liveness

        async def ask(runner: RunnerId) -> tuple[RunnerId, PingResult]:
            async with slots:
                return runner, await confirmed_life(liveness, runner, timeout_s=PING_TIMEOUT_S)

        runners = dict.fromkeys(owner for owner in owners if owner is not None)
        return dict(await asyncio.gather(*map(ask, runners)))

    async def _wake(
        self, at: Address, row: SweptRow, stalls: StallDetector, owner_life: PingResult | None
    ) -> None:
        wakes, position = self._eventlog.wakes, row.position
        if await wakes.wake(at, position=position):
            metrics.WOKEN.inc()
            log.info("stalled session woken", extra={"session_id": at.session_id})
        elif stalls.count_refusal(at, owner_life) and await wakes.renew(at, position=position):
            metrics.WOKEN.inc()
            log.warning("wake lost: sent again", extra={"session_id": at.session_id})


def _report(failures: Mapping[TenantId, LogError]) -> None:
    for tenant, error in failures.items():
        log.warning(
            "stalled sessions of a tenant could not be woken: the sweep tries again",
            extra={"tenant": tenant, "reason": str(error)},
        )
