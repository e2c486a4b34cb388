"""Token counts of Gemini. Every chunk repeats them; output does not include reasoning."""

from typing import Any

from fairlead_llm.counts import add, count, subtract
from fairlead_schema.provider.events import ProviderUsage


def merge_reports(report: dict[str, Any], later: object) -> dict[str, Any]:
    """Merge two reports; the later one wins."""
    return report | later if isinstance(later, dict) else report


def read_usage(raw: dict[str, Any]) -> ProviderUsage:
    """Fresh input, cache, visible output and reasoning. No token is counted twice (D-34)."""
    prompt = add(count(raw.get("promptTokenCount")), count(raw.get("toolUsePromptTokenCount")))
    cache_read = count(raw.get("cachedContentTokenCount"))
    output = count(raw.get("candidatesTokenCount"))
    reasoning = count(raw.get("thoughtsTokenCount"))
    total = count(raw.get("totalTokenCount"))
    return ProviderUsage(
        input=subtract(prompt, cache_read),
        cache_read=cache_read,
        output=output,
        reasoning=reasoning,
        total=add(prompt, output, reasoning) if total is None else total,
    )
