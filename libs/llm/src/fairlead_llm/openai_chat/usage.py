"""Token counts of Chat Completions: totals become parts that do not overlap. Unknown is None."""

from typing import Any

from fairlead_llm.counts import count, nested_count, subtract
from fairlead_schema.provider.events import ProviderUsage


def latest_report(report: dict[str, Any] | None, chunk: dict[str, Any]) -> dict[str, Any] | None:
    """The raw usage after this chunk. A later report of zeros is ignored: some vendors end so."""
    groq = chunk.get("x_groq")
    raw = chunk.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None)
    if not isinstance(raw, dict):
        return report
    if report is not None and not any(map(count, (raw.get(name) for name in _TOTALS))):
        return report
    return raw


def read_usage(raw: dict[str, Any] | None) -> ProviderUsage:
    """Fresh input, cache, visible output and reasoning. No token is counted twice (D-34)."""
    if raw is None:
        return ProviderUsage()
    prompt, completion, total = (count(raw.get(name)) for name in _TOTALS)
    cache_read = _first(
        nested_count(raw, "prompt_tokens_details", "cached_tokens"),
        count(raw.get("cached_tokens")),
        count(raw.get("prompt_cache_hit_tokens")),
    )
    cache_write = nested_count(raw, "prompt_tokens_details", "cache_write_tokens")
    reasoning = nested_count(raw, "completion_tokens_details", "reasoning_tokens")
    if total is None and prompt is not None and completion is not None:
        total = prompt + completion
    return ProviderUsage(
        input=subtract(prompt, cache_read, cache_write),
        cache_read=cache_read,
        cache_write=cache_write,
        output=_visible_output(prompt, completion, reasoning, total),
        reasoning=reasoning,
        total=total,
    )


_TOTALS = ("prompt_tokens", "completion_tokens", "total_tokens")


def _visible_output(
    prompt: int | None, completion: int | None, reasoning: int | None, total: int | None
) -> int | None:
    """Output without reasoning. The total shows whether the completion count excludes reasoning.

    The completion count of xAI excludes it.
    """
    if completion is not None and reasoning and total == (prompt or 0) + completion + reasoning:
        return completion
    return subtract(completion, reasoning)


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
