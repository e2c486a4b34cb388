"""Usage: the report of a provider becomes token counts and their cost."""

from dataclasses import dataclass
from math import isfinite

from fairlead_schema.catalog import CacheTokens, Tokens
from fairlead_schema.provider.events import ProviderUsage

PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """USD per million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    above: tuple[tuple[int, "TokenPrice"], ...] = ()
    """Other prices for steps whose prompt is longer than a number of tokens."""


def tokens(usage: ProviderUsage) -> Tokens:
    """Token counts that add up. A missing or invalid count is 0."""
    return Tokens(
        input=_count(usage.input),
        output=_count(usage.output),
        reasoning=_count(usage.reasoning),
        cache=CacheTokens(read=_count(usage.cache_read), write=_count(usage.cache_write)),
    )


def cost(tokens_used: Tokens, price: TokenPrice) -> float:
    """The cost of tokens. Reasoning costs as output. A long prompt raises all prices."""
    prompt = tokens_used.input + tokens_used.cache.read + tokens_used.cache.write
    tiers = [(size, tier) for size, tier in price.above if prompt > size]
    if tiers:
        price = max(tiers, key=lambda tier: tier[0])[1]
    return (
        tokens_used.input * price.input
        + (tokens_used.output + tokens_used.reasoning) * price.output
        + tokens_used.cache.read * price.cache_read
        + tokens_used.cache.write * price.cache_write
    ) / PER_MILLION


def _count(value: float | None) -> int:
    return 0 if value is None or not isfinite(value) or value < 0 else int(value)
