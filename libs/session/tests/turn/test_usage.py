"""Usage: what a provider reports becomes token counts and their cost."""

import pytest
from libs.session.tests.conftest import CREATED, dispatched, given, ms, step_ended, step_started

from fairlead_schema.catalog import CacheTokens, Tokens
from fairlead_schema.provider.events import ProviderUsage
from fairlead_session.turn.usage import TokenPrice, cost, tokens

COUNTED = Tokens(input=10, output=20, reasoning=5, cache=CacheTokens(read=3, write=4))


def test_every_count_has_its_place() -> None:
    """D-34: input, output, reasoning and both sides of the cache are disjoint."""
    usage = ProviderUsage(input=10, cache_read=3, cache_write=4, output=20, reasoning=5, total=42)

    assert tokens(usage) == COUNTED


@pytest.mark.parametrize("odd", [None, -1, float("nan"), float("inf"), float("-inf")])
def test_what_was_not_reported_or_misreported_is_zero(odd: int | None) -> None:
    """D-34: unknown, negative and non-finite counts become 0."""
    assert tokens(ProviderUsage(odd, odd, odd, odd, odd, odd)) == Tokens()


def test_a_cost_is_per_million_and_reasoning_is_paid_as_output() -> None:
    """D-35: each count has its price."""
    price = TokenPrice(input=1.0, output=10.0, cache_read=0.1, cache_write=2.0)

    assert cost(COUNTED, price) == pytest.approx((10 + 250 + 0.3 + 8) / 1_000_000)
    assert cost(COUNTED, TokenPrice()) == 0


@pytest.mark.parametrize(("prompt", "paid"), [(7, 1), (8, 2), (10, 2), (11, 3)])
def test_a_long_prompt_is_paid_by_its_tier(prompt: int, paid: int) -> None:
    """D-35: the longest tier that the prompt passes, its cached parts included, prices the step."""
    price = TokenPrice(output=1, above=((10, TokenPrice(output=3)), (7, TokenPrice(output=2))))
    cache = CacheTokens(read=3, write=2)

    spent = cost(Tokens(input=prompt - 5, output=4, reasoning=1, cache=cache), price)

    assert spent == pytest.approx(5 * paid / 1_000_000)


def test_a_session_adds_up_its_steps() -> None:
    """I-18: totals are kept up to date from step events, and so is the time of the last change."""
    ended = step_ended(cost=0.5, tokens=COUNTED)
    session = given(
        CREATED, dispatched(), step_started(), ended, dispatched(), step_started(), ended
    )

    assert session.profile is not None
    assert session.usage.cost == pytest.approx(1.0)
    assert session.usage.tokens == COUNTED.plus(COUNTED)
    assert session.profile.updated == ms(7)
