"""Token counts: inclusive totals become disjoint parts; what is unknown stays None."""

from fairlead_llm.counts import count, inner, less
from fairlead_schema.provider.events import Usage


def disjoint(raw: object) -> Usage:
    """Fresh input, cache, visible output and reasoning, none counted twice (D-34)."""
    if not isinstance(raw, dict):
        return Usage()
    given, made = count(raw.get("input_tokens")), count(raw.get("output_tokens"))
    read = inner(raw, "input_tokens_details", "cached_tokens")
    written = inner(raw, "input_tokens_details", "cache_write_tokens")
    thought = inner(raw, "output_tokens_details", "reasoning_tokens")
    total = count(raw.get("total_tokens"))
    if total is None and given is not None and made is not None:
        total = given + made
    return Usage(
        input=less(given, read, written),
        cache_read=read,
        cache_write=written,
        output=less(made, thought),
        reasoning=thought,
        total=total,
    )
