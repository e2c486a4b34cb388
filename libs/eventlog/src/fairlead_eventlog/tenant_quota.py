"""A quota of work that runs: how much of it a tenant may have at once in all processes together.

Each process knows its own work, and the projector knows that of all processes about a tenth of a
second late. So a tenant may exceed its quota by what other processes begin in that time, and by no
more. While the projector does not answer, each process keeps the quota for itself.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from fairlead_eventlog.tenant_totals import TenantTotalsReader
from fairlead_schema.commands.quota import QuotaLimits, QuotaName, QuotaReached
from fairlead_schema.ids import TenantId

# The age of an answer that decides while more than half of a quota is used.
CLOSE_FRESH_S: Final = 0.1
# Work that waits looks again after this time. Where many wait, each looks less often.
WAIT_S: Final = 0.25
WAIT_S_EACH: Final = 0.005
WAIT_S_MAX: Final = 5.0
# Work that did not look again for this long waits no more.
GONE_S: Final = 3 * WAIT_S_MAX


@dataclass(frozen=True, slots=True)
class QuotaWait:
    """Work has to wait for a quota, and looks again after the delay."""

    reached: QuotaReached
    delay_s: float


class RunningQuota:
    """One quota of running work for all tenants, as one process keeps it."""

    def __init__(
        self,
        quota: QuotaName,
        totals: TenantTotalsReader,
        limits: Callable[[TenantId], QuotaLimits],
        *,
        on_unknown: Callable[[], None] = lambda: None,
    ) -> None:
        self._quota = quota
        self._totals = totals
        self._limits = limits
        self._on_unknown = on_unknown
        self._running: dict[TenantId, dict[Hashable, float]] = {}
        """The work of this process by its start, the oldest first."""
        self._waiting: dict[TenantId, dict[Hashable, float]] = {}

    async def take(self, tenant: TenantId, work: Hashable) -> QuotaWait | None:
        """Count work as running, unless it has to wait. The caller releases what it took."""
        allowed = self._limits(tenant).limit(self._quota)
        used = 0 if allowed is None else await self._load_amount(tenant, allowed)
        # Nothing waits from here on: of two that look at once, the second sees the first.
        running = self._running.get(tenant, {})
        since = self._totals.counted_until(tenant)
        unseen = sum(1 for started_at in running.values() if started_at > since)
        used = max(used + unseen, len(running))
        if allowed is not None and used >= allowed:
            reached = QuotaReached(self._quota, used, allowed)
            return QuotaWait(reached, wait_s(self._note_waiting(tenant, work)))
        self._waiting.get(tenant, {}).pop(work, None)
        self._running.setdefault(tenant, {})[work] = time.monotonic()
        return None

    def release(self, tenant: TenantId, work: Hashable) -> None:
        """Count work as ended."""
        running = self._running[tenant]
        del running[work]
        if not running:
            del self._running[tenant]

    async def _load_amount(self, tenant: TenantId, allowed: int) -> int:
        totals = await self._totals.load(tenant)
        if totals is not None and totals.amount(self._quota) * 2 >= allowed:
            totals = await self._totals.load(tenant, fresh_s=CLOSE_FRESH_S)
        if totals is None:
            self._on_unknown()
            return 0
        return totals.amount(self._quota)

    def _note_waiting(self, tenant: TenantId, work: Hashable) -> int:
        """Note that work waits; the answer is how much of the tenant's work waits here."""
        waiting, now = self._waiting.setdefault(tenant, {}), time.monotonic()
        waiting.pop(work, None)
        waiting[work] = now
        while now - next(iter(waiting.values())) > GONE_S:
            del waiting[next(iter(waiting))]
        return len(waiting)


def wait_s(waiting: int) -> float:
    """How long work waits before it looks again, if so much of it waits."""
    return min(WAIT_S + WAIT_S_EACH * (waiting - 1), WAIT_S_MAX)
