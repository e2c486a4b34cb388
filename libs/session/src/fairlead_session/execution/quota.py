"""Quotas of tenants and principals: which one is reached, what is used of each, and how `explain` says so."""

from collections.abc import Iterable, Mapping
from typing import Final

from fairlead_schema.commands.quota import (
    QUOTAS,
    HolderKind,
    QuotaLimits,
    QuotaName,
    QuotaReached,
    QuotaUse,
    TenantTotals,
)

PROMPT_QUOTAS: Final[tuple[QuotaName, ...]] = ("log_bytes", "pending")
"""The quotas that a new prompt needs."""
CREATE_QUOTAS: Final[tuple[QuotaName, ...]] = ("sessions", "log_bytes")
"""The quotas that a new session needs."""


def find_reached_quota(
    limits: QuotaLimits, totals: TenantTotals, quotas: Iterable[QuotaName]
) -> QuotaReached | None:
    """The first of some quotas that allows no more."""
    holder: HolderKind = "tenant" if totals.principal is None else "principal"
    for quota in quotas:
        used, allowed = totals.amount(quota), limits.limit(quota)
        if allowed is not None and used >= allowed:
            return QuotaReached(quota, used, allowed, holder)
    return None


def find_exceeded_quota(
    limits: QuotaLimits, totals: TenantTotals, adds: Mapping[QuotaName, int]
) -> QuotaReached | None:
    """The first quota that has no room for what is added. Nothing needs no room."""
    holder: HolderKind = "tenant" if totals.principal is None else "principal"
    for quota, amount in adds.items():
        used, allowed = totals.amount(quota), limits.limit(quota)
        if amount and allowed is not None and used + amount > allowed:
            return QuotaReached(quota, used, allowed, holder)
    return None


def quota_uses(limits: QuotaLimits, totals: TenantTotals) -> tuple[QuotaUse, ...]:
    """Every quota of a tenant or a principal, with what is used and what is allowed."""
    return tuple(
        QuotaUse(quota=quota, used=totals.amount(quota), allowed=limits.limit(quota))
        for quota in QUOTAS
    )
