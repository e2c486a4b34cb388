"""Keeps the quotas of tenants and principals at the door: new sessions and new prompts.

A session counts for the principal that created it, with the prompts of everybody. So a prompt needs room
in the share of its caller and in that of the creator of its session.
"""

from collections.abc import AsyncIterator, Iterable, Mapping

from fairlead_eventlog.quotas.tenant_totals import TenantTotalsReader
from fairlead_schema.commands.quota import (
    UNLIMITED,
    QuotaHolder,
    QuotaLimits,
    QuotaName,
    QuotaPolicy,
    QuotaReached,
    TenantTotals,
    quota_holders,
)
from fairlead_schema.errors import LimitReached
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_service.config.configuration import Config
from fairlead_service.quota_metrics import QUOTA_REACHED, QUOTA_UNKNOWN
from fairlead_service.rpc.caller import current_caller
from fairlead_session.execution.quota import find_exceeded_quota, find_reached_quota
from fairlead_session.state.session import Session


class QuotaCheck:
    """Finds quotas that allow no more. While nobody knows what is used, all is admitted."""

    def __init__(self, totals: TenantTotalsReader, config: Config) -> None:
        self._totals = totals
        self._policy = QuotaPolicy(config.quotas, config.principal_quotas)

    async def find_reached_quota(
        self,
        tenant: TenantId,
        quotas: Iterable[QuotaName],
        *,
        creator: PrincipalName | None = None,
    ) -> QuotaReached | None:
        """The first of some quotas of the tenant, the caller and the creator that allows no more."""
        for principal in dict.fromkeys((None, current_caller(), creator)):
            reached = await self._find(QuotaHolder(tenant, principal), quotas)
            if reached is not None:
                return reached
        return None

    async def find_exceeded_quota(
        self, tenant: TenantId, adds: Mapping[QuotaName, int]
    ) -> QuotaReached | None:
        """The first quota of the tenant or the caller that has no room for all that is added."""
        for principal in dict.fromkeys((None, current_caller())):
            holder = QuotaHolder(tenant, principal)
            limits = self._policy.limits(holder)
            if not any(limits.limit(quota) is not None for quota in adds):
                continue
            totals = await self._totals.load(*holder)
            if totals is None:
                QUOTA_UNKNOWN.inc()
                continue
            if (exceeded := find_exceeded_quota(limits, totals, adds)) is not None:
                return exceeded
        return None

    async def known_totals(
        self, tenant: TenantId, creator: PrincipalName | None
    ) -> AsyncIterator[tuple[QuotaLimits, TenantTotals]]:
        """The limits of a tenant and a principal that have any, with what is used, if that is known."""
        for holder in quota_holders(tenant, creator):
            limits = self._policy.limits(holder)
            if limits != UNLIMITED and (totals := await self._totals.load(*holder)) is not None:
                yield limits, totals

    def limits_principals(self, tenant: TenantId, quotas: Iterable[QuotaName]) -> bool:
        """Whether the principals of a tenant have a limit of some quotas."""
        limits = self._policy.principal(tenant)
        return any(limits.limit(quota) is not None for quota in quotas)

    def add(self, at: Address, session: Session, quota: QuotaName, amount: int = 1) -> None:
        """Note what was admitted to a session, until the projector counts it."""
        creator = None if session.profile is None else session.profile.created_by
        self._totals.add(at.tenant, quota, amount)
        if creator is not None and self.limits_principals(at.tenant, (quota,)):
            self._totals.add(at.tenant, quota, amount, principal=creator)

    async def _find(self, holder: QuotaHolder, quotas: Iterable[QuotaName]) -> QuotaReached | None:
        limits = self._policy.limits(holder)
        limited = [quota for quota in quotas if limits.limit(quota) is not None]
        if not limited:
            return None
        totals = await self._totals.load(*holder)
        if totals is None:
            QUOTA_UNKNOWN.inc()
            return None
        return find_reached_quota(limits, totals, limited)


def quota_error(reached: QuotaReached) -> LimitReached:
    """The error that a caller reads, which names the quota."""
    QUOTA_REACHED.labels(reached.name).inc()
    sentence = reached.sentence[0].upper() + reached.sentence[1:]
    return LimitReached(f"{sentence}: {reached.remedy}", kind="Quota", field=reached.name)
