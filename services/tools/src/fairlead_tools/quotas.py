"""Keeps the quotas of running calls and of stored outputs, for one worker.

A call and its outputs count for the principal that created their session, and for its tenant.
"""

import time
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.quotas.running_quota import QuotaWait, RunningQuota
from fairlead_eventlog.quotas.stored_bytes import CountsBytes, JoinedStores, StoredBytes
from fairlead_eventlog.quotas.tenant_totals import TenantTotalsReader
from fairlead_schema.commands.quota import QuotaHolder, QuotaPolicy, QuotaReached, quota_holders
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import TenantId
from fairlead_service.quota_metrics import QUOTA_REACHED, QUOTA_UNKNOWN
from fairlead_tools.calls.request import RequestKey

# The server lists every stored output of a tenant for its sum, so the sum is kept for a while.
OUTPUTS_FRESH_S: Final = 5.0
TENANTS_MAX: Final = 10_000


class TenantQuotas:
    """What one worker does to keep the quotas of tenants and principals."""

    def __init__(self, eventlog: EventLog, policy: QuotaPolicy) -> None:
        self.calls = CallQuota(TenantTotalsReader(eventlog.requests), policy)
        self.outputs = OutputQuota(JoinedStores(eventlog.outputs, eventlog.attachments), policy)


class CallQuota:
    """The calls that this worker counts as running, each at most once."""

    def __init__(self, totals: TenantTotalsReader, policy: QuotaPolicy) -> None:
        self._quota = RunningQuota("calls", totals, policy, on_unknown=QUOTA_UNKNOWN.inc)
        self._taken: dict[RequestKey, PrincipalName | None] = {}
        """The running calls, each with its principal."""

    async def take(
        self, call: RequestKey, principal: PrincipalName | None = None
    ) -> QuotaWait | None:
        """Count a call as running, unless it has to wait. A second decision counts it no more."""
        if call in self._taken:
            return None
        wait = await self._quota.take(call[0].tenant, call, principal)
        if wait is None:
            self._taken[call] = principal
        else:
            QUOTA_REACHED.labels(wait.reached.name).inc()
        return wait

    def release(self, call: RequestKey) -> None:
        """Count a call as ended, if it was counted."""
        if call in self._taken:
            self._quota.release(call[0].tenant, call, self._taken.pop(call))


class OutputQuota:
    """The bytes of stored outputs of each tenant, some seconds old, with what this worker added."""

    def __init__(self, outputs: CountsBytes, policy: QuotaPolicy) -> None:
        self._outputs = outputs
        self._policy = policy
        self._known: dict[TenantId, tuple[float, StoredBytes]] = {}

    async def find_reached_quota(
        self, tenant: TenantId, principal: PrincipalName | None = None
    ) -> QuotaReached | None:
        """The quota of the tenant, else of the principal, if it has stored as much as it may."""
        holders = quota_holders(tenant, principal)
        limited = [(one, self._policy.limits(one).output_bytes) for one in holders]
        if all(allowed is None for _, allowed in limited):
            return None
        try:
            stored = await self._load(tenant)
        except LogError:
            QUOTA_UNKNOWN.inc()
            return None
        for holder, allowed in limited:
            used = stored.of(holder.principal)
            if allowed is not None and used >= allowed:
                return _note_reached(holder, used, allowed)
        return None

    def add(self, tenant: TenantId, size: int, principal: PrincipalName | None = None) -> None:
        """Note that this worker has stored an output, until the next count includes it."""
        if tenant in self._known:
            counted_at, stored = self._known[tenant]
            self._known[tenant] = (counted_at, stored.plus(principal, size))

    async def _load(self, tenant: TenantId) -> StoredBytes:
        now = time.monotonic()
        known = self._known.get(tenant)
        if known is not None and now - known[0] < OUTPUTS_FRESH_S:
            return known[1]
        stored = await self._outputs.stored_bytes(tenant)
        if len(self._known) >= TENANTS_MAX:
            self._known.clear()
        self._known[tenant] = (now, stored)
        return stored


def _note_reached(holder: QuotaHolder, used: int, allowed: int) -> QuotaReached:
    reached = QuotaReached("output_bytes", used, allowed, holder.kind)
    QUOTA_REACHED.labels(reached.name).inc()
    return reached
