"""A quota of work that runs: how much of it a tenant, and each of its principals, may have at once.

Each process knows its own work, and the projector knows that of all processes about a tenth of a
second late. So a quota may be exceeded by what other processes begin in that time, and by no
more. While the projector does not answer, each process keeps the quota for itself.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from fairlead_eventlog.quotas.tenant_totals import TenantTotalsReader
from fairlead_schema.commands.quota import (
    QuotaHolder,
    QuotaName,
    QuotaPolicy,
    QuotaReached,
    quota_holders,
)
from fairlead_schema.identity.principal import PrincipalName
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
    """One quota of running work for all tenants and principals, as one process keeps it."""

    def __init__(
        self,
        quota: QuotaName,
        totals: TenantTotalsReader,
        policy: QuotaPolicy,
        *,
        on_unknown: Callable[[], None] = lambda: None,
    ) -> None:
        self._quota = quota
        self._totals = totals
        self._policy = policy
        self._on_unknown = on_unknown
        self._running: dict[QuotaHolder, dict[Hashable, float]] = {}
        """The work of this process by its start, the oldest first."""
        self._waiting: dict[QuotaHolder, dict[Hashable, float]] = {}

    async def take(
        self, tenant: TenantId, work: Hashable, principal: PrincipalName | None = None
    ) -> QuotaWait | None:
        """Count work as running, unless it has to wait. The caller releases what it took."""
        holders = quota_holders(tenant, principal)
        counted = [await self._load_amount(holder) for holder in holders]
        # Nothing waits from here on: of two that look at once, the second sees the first.
        for holder, amount in zip(holders, counted, strict=True):
            reached = self._find_reached(holder, amount)
            if reached is not None:
                return QuotaWait(reached, wait_s(self._note_waiting(holder, work)))
        for holder in holders:
            self._forget_waiting(holder, work)
            self._running.setdefault(holder, {})[work] = time.monotonic()
        return None

    def release(
        self, tenant: TenantId, work: Hashable, principal: PrincipalName | None = None
    ) -> None:
        """Count work as ended."""
        for holder in quota_holders(tenant, principal):
            running = self._running[holder]
            del running[work]
            if not running:
                del self._running[holder]

    async def _load_amount(self, holder: QuotaHolder) -> int:
        """What the projector counts; nothing where no limit holds or the projector is silent."""
        allowed = self._policy.limits(holder).limit(self._quota)
        if allowed is None:
            return 0
        totals = await self._totals.load(*holder)
        if totals is not None and totals.amount(self._quota) * 2 >= allowed:
            totals = await self._totals.load(*holder, fresh_s=CLOSE_FRESH_S)
        if totals is None:
            self._on_unknown()
            return 0
        return totals.amount(self._quota)

    def _find_reached(self, holder: QuotaHolder, counted: int) -> QuotaReached | None:
        """The quota, if what the projector counts and what runs here allow no more."""
        allowed = self._policy.limits(holder).limit(self._quota)
        running, since = self._running.get(holder, {}), self._totals.counted_until(*holder)
        unseen = sum(1 for started_at in running.values() if started_at > since)
        used = max(counted + unseen, len(running))
        if allowed is None or used < allowed:
            return None
        return QuotaReached(self._quota, used, allowed, holder.kind)

    def _forget_waiting(self, holder: QuotaHolder, work: Hashable) -> None:
        waiting = self._waiting.get(holder)
        if waiting is not None:
            waiting.pop(work, None)
            if not waiting:
                del self._waiting[holder]

    def _note_waiting(self, holder: QuotaHolder, work: Hashable) -> int:
        """Note that work waits; the answer is how much of the holder's work waits here."""
        waiting, now = self._waiting.setdefault(holder, {}), time.monotonic()
        waiting.pop(work, None)
        waiting[work] = now
        while now - next(iter(waiting.values())) > GONE_S:
            del waiting[next(iter(waiting))]
        return len(waiting)


def wait_s(waiting: int) -> float:
    """How long work waits before it looks again, if so much of it waits."""
    return min(WAIT_S + WAIT_S_EACH * (waiting - 1), WAIT_S_MAX)
