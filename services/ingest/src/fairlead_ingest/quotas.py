"""Keeps the quotas of tenants and principals at the door: new sessions and new prompts.

A session counts for the principal that created it. A service that acts for itself has no quota of
a principal.
"""

from collections.abc import Iterable

from fairlead_eventlog.quotas.tenant_totals import TenantTotalsReader
from fairlead_schema.commands.quota import QuotaLimits, QuotaName, QuotaReached
from fairlead_schema.errors import LimitReached
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import TenantId
from fairlead_service.config.configuration import Config
from fairlead_service.quota_metrics import QUOTA_REACHED, QUOTA_UNKNOWN
from fairlead_service.rpc.caller import current_caller
from fairlead_session.execution.quota import find_reached_quota


class QuotaCheck:
    """Finds quotas that allow no more. While nobody knows what is used, all is admitted."""

    def __init__(self, totals: TenantTotalsReader, config: Config) -> None:
        self._totals = totals
        self._config = config

    async def find_reached_quota(
        self, tenant: TenantId, quotas: Iterable[QuotaName]
    ) -> QuotaReached | None:
        """The first of some quotas of the tenant, then of the caller, that allows no more."""
        limits, caller = self._config.quotas(tenant), current_caller()
        reached = await self._find(limits, tenant, None, quotas)
        if reached is not None or caller is None:
            return reached
        return await self._find(self._config.principal_quotas(tenant), tenant, caller, quotas)

    def add(self, tenant: TenantId, quota: QuotaName, amount: int = 1) -> None:
        """Note what was admitted, until the projector counts it."""
        self._totals.add(tenant, quota, amount)
        caller, limits = current_caller(), self._config.principal_quotas(tenant)
        if caller is not None and limits.limit(quota) is not None:
            self._totals.add(tenant, quota, amount, principal=caller)

    async def _find(
        self,
        limits: QuotaLimits,
        tenant: TenantId,
        principal: PrincipalName | None,
        quotas: Iterable[QuotaName],
    ) -> QuotaReached | None:
        limited = [quota for quota in quotas if limits.limit(quota) is not None]
        if not limited:
            return None
        totals = await self._totals.load(tenant, principal)
        if totals is None:
            QUOTA_UNKNOWN.inc()
            return None
        return find_reached_quota(limits, totals, limited)


def quota_error(reached: QuotaReached) -> LimitReached:
    """The error that a caller reads, which names the quota."""
    QUOTA_REACHED.labels(reached.name).inc()
    sentence = reached.sentence[0].upper() + reached.sentence[1:]
    return LimitReached(f"{sentence}: {reached.remedy}", kind="Quota", field=reached.name)
