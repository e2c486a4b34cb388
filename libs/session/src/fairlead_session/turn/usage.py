"""Usage: what a provider reports becomes the session's token counts and what they cost."""

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
    """Prices of steps whose prompt is longer than so many tokens."""


def tokens(usage: ProviderUsage) -> Tokens:
    """Counts a session can add up: what a provider did not report, or misreported, is 0."""
    return Tokens(
        input=_count(usage.input),
        output=_count(usage.output),
        reasoning=_count(usage.reasoning),
        cache=CacheTokens(read=_count(usage.cache_read), write=_count(usage.cache_write)),
    )


def cost(counted: Tokens, price: TokenPrice) -> float:
    """What these tokens cost; reasoning is paid as output, a long prompt makes all of it dearer."""
    prompt = counted.input + counted.cache.read + counted.cache.write
    passed = [(size, dearer) for size, dearer in price.above if prompt > size]
    if passed:
        price = max(passed, key=lambda tier: tier[0])[1]
    return (
        counted.input * price.input
        + (counted.output + counted.reasoning) * price.output
        + counted.cache.read * price.cache_read
        + counted.cache.write * price.cache_write
    ) / PER_MILLION


def _count(value: float | None) -> int:
    return 0 if value is None or not isfinite(value) or value < 0 else int(value)
