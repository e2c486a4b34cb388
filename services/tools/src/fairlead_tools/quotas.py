"""Keeps a tenant's quotas of running calls and of stored outputs, for one worker."""

import time
from collections.abc import Callable
from typing import Final, TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import OutputStore
from fairlead_eventlog.tenant_quota import QuotaWait, RunningQuota
from fairlead_eventlog.tenant_totals import TenantTotalsReader
from fairlead_schema.commands.quota import QuotaLimits, QuotaReached
from fairlead_schema.ids import TenantId
from fairlead_service.quota_metrics import QUOTA_REACHED, QUOTA_UNKNOWN
from fairlead_tools.calls.request import RequestKey

# The server lists every stored output of a tenant for its sum, so the sum is kept for a while.
OUTPUTS_FRESH_S: Final = 5.0
TENANTS_MAX: Final = 10_000
UNLIMITED: Final = QuotaLimits()

LimitsOf: TypeAlias = Callable[[TenantId], QuotaLimits]
"""The quotas of a tenant."""


class TenantQuotas:
    """What one worker does to keep the quotas of tenants."""

    def __init__(self, eventlog: EventLog, limits: LimitsOf) -> None:
        self.calls = CallQuota(TenantTotalsReader(eventlog.requests), limits)
        self.outputs = OutputQuota(eventlog.outputs, limits)


class CallQuota:
    """The calls that this worker counts as running, each at most once."""

    def __init__(self, totals: TenantTotalsReader, limits: LimitsOf) -> None:
        self._quota = RunningQuota("calls", totals, limits, on_unknown=QUOTA_UNKNOWN.inc)
        self._taken: set[RequestKey] = set()

    async def take(self, call: RequestKey) -> QuotaWait | None:
        """Count a call as running, unless it has to wait. A second decision counts it no more."""
        if call in self._taken:
            return None
        wait = await self._quota.take(call[0].tenant, call)
        if wait is None:
            self._taken.add(call)
        else:
            QUOTA_REACHED.labels(wait.reached.quota).inc()
        return wait

    def release(self, call: RequestKey) -> None:
        """Count a call as ended, if it was counted."""
        if call in self._taken:
            self._taken.remove(call)
            self._quota.release(call[0].tenant, call)


class OutputQuota:
    """The bytes of stored outputs of each tenant, some seconds old, with what this worker added."""

    def __init__(self, outputs: OutputStore, limits: LimitsOf) -> None:
        self._outputs = outputs
        self._limits = limits
        self._known: dict[TenantId, tuple[float, int]] = {}

    async def find_reached_quota(self, tenant: TenantId) -> QuotaReached | None:
        """The quota, if the tenant has stored as much as it may."""
        allowed = self._limits(tenant).output_bytes
        if allowed is None:
            return None
        now = time.monotonic()
        counted_at, used = self._known.get(tenant, (now - OUTPUTS_FRESH_S, 0))
        if now - counted_at >= OUTPUTS_FRESH_S:
            try:
                used = await self._outputs.stored_bytes(tenant)
            except LogError:
                QUOTA_UNKNOWN.inc()
                return None
            if len(self._known) >= TENANTS_MAX:
                self._known.clear()
            self._known[tenant] = (now, used)
        if used < allowed:
            return None
        QUOTA_REACHED.labels("output_bytes").inc()
        return QuotaReached("output_bytes", used, allowed)

    def add(self, tenant: TenantId, size: int) -> None:
        """Note that this worker has stored an output, until the next count includes it."""
        if tenant in self._known:
            counted_at, used = self._known[tenant]
            self._known[tenant] = (counted_at, used + size)
