"""Token counts of the Messages API: disjoint inputs already, cumulative while the answer streams."""

from typing import Any

from fairlead_llm.counts import count, inner, less, plus
from fairlead_schema.provider.events import Usage


def merged(known: dict[str, Any], raw: object) -> dict[str, Any]:
    """The later report wins field by field; counters only grow, so a zero that follows says nothing."""
    if not isinstance(raw, dict):
        return known
    fresh = {
        name: value
        for name, value in raw.items()
        if value is not None and not (value == 0 and known.get(name))
    }
    return known | fresh


def disjoint(raw: dict[str, Any]) -> Usage:
    """Fresh input, cache, visible output and reasoning, none counted twice (D-34)."""
    given, made = count(raw.get("input_tokens")), count(raw.get("output_tokens"))
    read = count(raw.get("cache_read_input_tokens"))
    written = count(raw.get("cache_creation_input_tokens"))
    thought = inner(raw, "output_tokens_details", "thinking_tokens")
    return Usage(
        input=given,
        cache_read=read,
        cache_write=written,
        output=less(made, thought),
        reasoning=thought,
        total=plus(given, read, written, made),
    )
