"""Keeps the quotas of tenants at the door: new sessions and new prompts."""

from collections.abc import Iterable

from fairlead_eventlog.tenant_totals import TenantTotalsReader
from fairlead_schema.commands.quota import QuotaName, QuotaReached
from fairlead_schema.errors import LimitReached
from fairlead_schema.ids import TenantId
from fairlead_service.config.configuration import Config
from fairlead_service.quota_metrics import QUOTA_REACHED, QUOTA_UNKNOWN
from fairlead_session.execution.quota import find_reached


class QuotaCheck:
    """Finds quotas that allow no more. While nobody knows what a tenant uses, all is admitted."""

    def __init__(self, totals: TenantTotalsReader, config: Config) -> None:
        self._totals = totals
        self._config = config

    async def find_reached(
        self, tenant: TenantId, quotas: Iterable[QuotaName]
    ) -> QuotaReached | None:
        """The first of some quotas that allows no more."""
        limits = self._config.quotas(tenant)
        limited = [quota for quota in quotas if limits.limit(quota) is not None]
        if not limited:
            return None
        totals = await self._totals.load(tenant)
        if totals is None:
            QUOTA_UNKNOWN.inc()
            return None
        return find_reached(limits, totals, limited)

    def add(self, tenant: TenantId, quota: QuotaName, amount: int = 1) -> None:
        """Note what was admitted, until the projector counts it."""
        self._totals.add(tenant, quota, amount)


def quota_error(reached: QuotaReached) -> LimitReached:
    """The error that a caller reads, which names the quota."""
    QUOTA_REACHED.labels(reached.quota).inc()
    sentence = reached.sentence[0].upper() + reached.sentence[1:]
    return LimitReached(f"{sentence}: {reached.remedy}", kind="Quota", field=reached.quota)
