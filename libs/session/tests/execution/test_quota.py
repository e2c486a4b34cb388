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
    find_reached_quota,
    quota_uses,
)
from fairlead_session.explain import Code, Explanation, State, add_quotas


@pytest.mark.parametrize("quota", QUOTAS)
def test_a_quota_is_reached_when_all_of_it_is_used(quota: QuotaName) -> None:
    """B11: one less than allowed is not reached; zero allowed is reached at once."""
    limits, empty = QuotaLimits.model_validate({quota: 3}), QuotaLimits.model_validate({quota: 0})

    below = find_reached_quota(limits, TenantTotals.model_validate({quota: 2}), QUOTAS)
    at = find_reached_quota(limits, TenantTotals.model_validate({quota: 3}), QUOTAS)

    assert below is None
    assert at == QuotaReached(quota, 3, 3)
    assert find_reached_quota(empty, TenantTotals(), QUOTAS) == QuotaReached(quota, 0, 0)
    assert f"raise `{quota}`" in at.remedy
    assert "3 of 3" in at.sentence


def test_without_limits_nothing_is_reached() -> None:
    totals = TenantTotals.model_validate(dict.fromkeys(QUOTAS, 10**15))

    assert find_reached_quota(QuotaLimits(), totals, QUOTAS) is None


def test_a_prompt_and_a_session_need_only_their_own_quotas() -> None:
    limits, totals = QuotaLimits(sessions=1, pending=1), TenantTotals(sessions=1)

    assert find_reached_quota(limits, totals, PROMPT_QUOTAS) is None
    assert find_reached_quota(limits, totals, CREATE_QUOTAS) == QuotaReached("sessions", 1, 1)


def test_a_principal_has_its_own_quotas_and_a_refusal_says_so() -> None:
    """B11: the same limits and words, with the principal as the holder."""
    totals = TenantTotals(principal="key:ann", sessions=2)
    limits = QuotaLimits(sessions=2)

    reached = find_reached_quota(limits, totals, CREATE_QUOTAS)

    assert reached == QuotaReached("sessions", 2, 2, "principal")
    assert reached.name == "principal.sessions"
    assert "[quota.principal]" in reached.remedy
    assert [use.quota for use in quota_uses(limits, totals)] == list(QUOTAS)


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


@pytest.mark.parametrize(
    ("state", "code", "waits"),
    [
        ("queued", "pending-input", "2 of 2 running turns"),
        ("waiting", "tool", "2 of 2 running tool calls"),
        ("running", "calls", "2 of 2 running tool calls"),
        ("waiting", "question", None),
        ("idle", "idle", None),
    ],
)
def test_an_explanation_names_the_quota_that_the_session_waits_for(
    state: State, code: Code, waits: str | None
) -> None:
    """B11: a session that waits for a person or for nothing waits for no quota."""
    explanation = Explanation(state=state, code=code, reason="So it is.", next="see")
    limits = QuotaLimits(turns=2, calls=2)

    full = add_quotas(explanation, limits, TenantTotals(turns=2, calls=2))

    assert (waits is None) == (full == explanation)
    assert waits is None or f"What has not begun waits: the tenant has {waits}." in full.reason
    assert add_quotas(explanation, limits, TenantTotals(turns=1, calls=1)) == explanation


def test_an_explanation_names_the_quota_of_the_principal_that_created_the_session() -> None:
    """B11: its turns and calls wait, and prompts in its sessions are refused, whoever prompts."""
    explanation = Explanation(state="queued", code="pending-input", reason="So it is.")
    totals = TenantTotals(principal="key:ann", turns=1, pending=9)

    full = add_quotas(explanation, QuotaLimits(turns=1, pending=1), totals)

    assert full.reason == (
        "So it is. What has not begun waits: the principal has 1 of 1 running turns."
        " New prompts are refused: the principal has 9 of 1 pending prompts."
    )
    assert full.next == "wait until a turn ends, or raise `turns` in [quota.principal]"


def test_an_explanation_says_that_new_prompts_are_refused() -> None:
    explanation = Explanation(state="idle", code="idle", reason="It rests.")

    full = add_quotas(explanation, QuotaLimits(log_bytes=10), TenantTotals(log_bytes=1000))

    assert full.reason == (
        "It rests. New prompts are refused: the tenant has 1,000 of 10 bytes in the log."
    )
    assert full.next is not None
    assert "raise `log_bytes`" in full.next
