"""The totals of tenants and principals as the projector counts them, with what this process has added since."""

import asyncio
import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import orjson

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import Requests
from fairlead_schema import subjects
from fairlead_schema.commands.quota import AskTenantTotals, QuotaHolder, QuotaName, TenantTotals
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import TenantId

HOLDERS_MAX: Final = 10_000
# Additions of one such span are kept as one number.
ADDED_SPAN_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class TotalsTimings:
    """Pauses that no operator needs to change; tests shorten them."""

    fresh_s: float = 1.0
    """An answer of this age holds. An older one holds while a new one is on its way."""
    kept_s: float = 30.0
    """How long the last answer holds while the projector does not answer."""
    timeout_s: float = 0.5
    lag_s: float = 0.3
    """What a process added so shortly before an answer may be missing in the answer."""


@dataclass(slots=True)
class _Known:
    """What this process knows of a tenant or a principal."""

    totals: TenantTotals | None = None
    loaded_at: float = -math.inf
    tried_at: float = -math.inf
    added: Counter[tuple[int, QuotaName]] = field(default_factory=Counter)
    """What this process added, by span of time and quota: few numbers, however much it adds."""
    sums: Counter[QuotaName] = field(default_factory=Counter)
    """The same by quota: what every question needs."""
    loading: asyncio.Task[None] | None = None
    is_first: bool = True
    """Whether the projector was not asked before. Nobody waits twice for a silent projector."""


class TenantTotalsReader:
    """Asks the projector for totals, at most about once a second each."""

    def __init__(self, requests: Requests, timings: TotalsTimings | None = None) -> None:
        self._requests = requests
        self._timings = timings or TotalsTimings()
        self._holders: dict[QuotaHolder, _Known] = {}

    async def load(
        self,
        tenant: TenantId,
        principal: PrincipalName | None = None,
        *,
        fresh_s: float | None = None,
    ) -> TenantTotals | None:
        """The totals of a tenant or of one principal; None while the projector does not answer.

        Only the first question waits for the projector, and one with `fresh_s`, which wants an
        answer of at most that age.
        """
        holder, timings = QuotaHolder(tenant, principal), self._timings
        known = self._find(holder)
        now = time.monotonic()
        age_s = now - known.loaded_at
        if age_s >= timings.kept_s:
            known.totals, known.added, known.sums = None, Counter(), Counter()
        wanted_s = timings.fresh_s if fresh_s is None else fresh_s
        if age_s >= wanted_s and now - known.tried_at >= wanted_s:
            known.tried_at = now
            known.loading = asyncio.create_task(self._load(holder, known))
        loading = known.loading
        if loading is not None and (known.is_first or fresh_s is not None):
            await asyncio.shield(loading)
        return _with_added(known)

    def counted_until(self, tenant: TenantId, principal: PrincipalName | None = None) -> float:
        """The time on this process's clock up to which the last answer surely counts all."""
        known = self._holders.get(QuotaHolder(tenant, principal))
        return -math.inf if known is None else known.loaded_at - self._timings.lag_s

    def add(
        self,
        tenant: TenantId,
        quota: QuotaName,
        amount: int = 1,
        *,
        principal: PrincipalName | None = None,
    ) -> None:
        """Note what this process has added, until an answer of the projector includes it."""
        known = self._find(QuotaHolder(tenant, principal))
        if known.totals is not None:
            known.added[_span(time.monotonic()), quota] += amount
            known.sums[quota] += amount

    def _find(self, holder: QuotaHolder) -> _Known:
        known = self._holders.get(holder)
        if known is None:
            if len(self._holders) >= HOLDERS_MAX:
                self._holders.clear()
            known = self._holders[holder] = _Known()
        return known

    async def _load(self, holder: QuotaHolder, known: _Known) -> None:
        asked_at = time.monotonic()
        question = AskTenantTotals(principal=holder.principal)
        try:
            answer = await self._requests.request(
                subjects.tenant_usage(holder.tenant),
                orjson.dumps(question.wire()),
                timeout_s=self._timings.timeout_s,
            )
            totals = TenantTotals.model_validate(orjson.loads(answer)["data"])
        except (LogError, ValueError, KeyError, TypeError):
            return  # The caller decides without the totals, and the next one asks again.
        finally:
            known.loading, known.is_first = None, False
        if totals.principal != holder.principal:
            return  # A projector of an earlier release answers for the tenant alone.
        known.totals, known.loaded_at = totals, asked_at
        since = _span(asked_at - self._timings.lag_s)
        known.added = Counter(
            {key: amount for key, amount in known.added.items() if key[0] >= since}
        )
        known.sums = Counter()
        for (_, quota), amount in known.added.items():
            known.sums[quota] += amount


def _with_added(known: _Known) -> TenantTotals | None:
    totals = known.totals
    if totals is None or not known.sums:
        return totals
    more: dict[str, int] = {
        quota: totals.amount(quota) + amount for quota, amount in known.sums.items()
    }
    return totals.model_copy(update=more)


def _span(now: float) -> int:
    return int(now / ADDED_SPAN_S)
