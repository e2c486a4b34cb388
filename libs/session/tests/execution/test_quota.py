"""Quotas as pure decisions: the first reached one is named, and absent limits limit nothing."""

import pytest

from fairlead_schema.commands.quota import (
    QUOTAS,
    QuotaLimits,
    QuotaName,
    QuotaReached,
    TenantTotals,
)
from fairlead_session.execution.quota import (
    CREATE_QUOTAS,
    PROMPT_QUOTAS,
    find_reached,
    quota_uses,
)


@pytest.mark.parametrize("quota", QUOTAS)
def test_a_quota_is_reached_when_all_of_it_is_used(quota: QuotaName) -> None:
    """B11: one less than allowed is not reached; zero allowed is reached at once."""
    limits, empty = QuotaLimits.model_validate({quota: 3}), QuotaLimits.model_validate({quota: 0})

    below = find_reached(limits, TenantTotals.model_validate({quota: 2}), QUOTAS)
    at = find_reached(limits, TenantTotals.model_validate({quota: 3}), QUOTAS)

    assert below is None
    assert at == QuotaReached(quota, 3, 3)
    assert find_reached(empty, TenantTotals(), QUOTAS) == QuotaReached(quota, 0, 0)
    assert f"raise `{quota}`" in at.remedy
    assert "3 of 3" in at.sentence


def test_without_limits_nothing_is_reached() -> None:
    totals = TenantTotals.model_validate(dict.fromkeys(QUOTAS, 10**15))

    assert find_reached(QuotaLimits(), totals, QUOTAS) is None


def test_a_prompt_and_a_session_need_only_their_own_quotas() -> None:
    limits, totals = QuotaLimits(sessions=1, pending=1), TenantTotals(sessions=1)

    assert find_reached(limits, totals, PROMPT_QUOTAS) is None
    assert find_reached(limits, totals, CREATE_QUOTAS) == QuotaReached("sessions", 1, 1)


def test_every_quota_is_listed_with_its_use() -> None:
    uses = quota_uses(QuotaLimits(turns=4), TenantTotals(turns=2, sessions=9))

    assert {use.quota: (use.used, use.allowed) for use in uses} == {
        "sessions": (9, None),
        "log_bytes": (0, None),
        "output_bytes": (0, None),
        "turns": (2, 4),
        "calls": (0, None),
        "pending": (0, None),
    }
