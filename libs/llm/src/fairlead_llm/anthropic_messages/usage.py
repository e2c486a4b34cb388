"""Token counts of the Messages API. Input counts do not overlap; counts grow during the stream."""

from typing import Any

from fairlead_llm.counts import add, count, nested_count, subtract
from fairlead_schema.provider.events import ProviderUsage


def merge_reports(report: dict[str, Any], later: object) -> dict[str, Any]:
    """Merge two reports; the later one wins. A later zero is ignored, because counts only grow."""
    if not isinstance(later, dict):
        return report
    fields = {
        name: value
        for name, value in later.items()
        if value is not None and not (value == 0 and report.get(name))
    }
    return report | fields


def read_usage(raw: dict[str, Any]) -> ProviderUsage:
    """Fresh input, cache, visible output and reasoning. No token is counted twice (D-34)."""
    input_, output = count(raw.get("input_tokens")), count(raw.get("output_tokens"))
    cache_read = count(raw.get("cache_read_input_tokens"))
    cache_write = count(raw.get("cache_creation_input_tokens"))
    reasoning = nested_count(raw, "output_tokens_details", "thinking_tokens")
    return ProviderUsage(
        input=input_,
        cache_read=cache_read,
        cache_write=cache_write,
        output=subtract(output, reasoning),
        reasoning=reasoning,
        total=add(input_, cache_read, cache_write, output),
    )
