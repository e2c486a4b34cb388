"""Token counts of the Responses API: totals become parts that do not overlap. Unknown is None."""

from fairlead_llm.counts import count, nested_count, subtract
from fairlead_schema.provider.events import ProviderUsage


def read_usage(raw: object) -> ProviderUsage:
    """Fresh input, cache, visible output and reasoning. No token is counted twice (D-34)."""
    if not isinstance(raw, dict):
        return ProviderUsage()
    prompt, output = count(raw.get("input_tokens")), count(raw.get("output_tokens"))
    cache_read = nested_count(raw, "input_tokens_details", "cached_tokens")
    cache_write = nested_count(raw, "input_tokens_details", "cache_write_tokens")
    reasoning = nested_count(raw, "output_tokens_details", "reasoning_tokens")
    total = count(raw.get("total_tokens"))
    if total is None and prompt is not None and output is not None:
        total = prompt + output
    return ProviderUsage(
        input=subtract(prompt, cache_read, cache_write),
        cache_read=cache_read,
        cache_write=cache_write,
        output=subtract(output, reasoning),
        reasoning=reasoning,
        total=total,
    )
