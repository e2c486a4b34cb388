"""Token counts: vendors' inclusive totals become disjoint parts; what is unknown stays None."""

from typing import Any

from fairlead_llm.counts import count, inner, less
from fairlead_schema.provider.events import Usage


def latest(known: dict[str, Any] | None, chunk: dict[str, Any]) -> dict[str, Any] | None:
    """The raw usage after this chunk. Some vendors repeat it, some end with all zeros: ignored."""
    groq = chunk.get("x_groq")
    raw = chunk.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None)
    if not isinstance(raw, dict):
        return known
    if known is not None and not any(map(count, (raw.get(name) for name in _TOTALS))):
        return known
    return raw


def disjoint(raw: dict[str, Any] | None) -> Usage:
    """Fresh input, cache, visible output and reasoning, none counted twice (D-34)."""
    if raw is None:
        return Usage()
    prompt, completion, total = (count(raw.get(name)) for name in _TOTALS)
    read = _first(
        inner(raw, "prompt_tokens_details", "cached_tokens"),
        count(raw.get("cached_tokens")),
        count(raw.get("prompt_cache_hit_tokens")),
    )
    written = inner(raw, "prompt_tokens_details", "cache_write_tokens")
    thought = inner(raw, "completion_tokens_details", "reasoning_tokens")
    if total is None and prompt is not None and completion is not None:
        total = prompt + completion
    return Usage(
        input=less(prompt, read, written),
        cache_read=read,
        cache_write=written,
        output=_visible(prompt, completion, thought, total),
        reasoning=thought,
        total=total,
    )


_TOTALS = ("prompt_tokens", "completion_tokens", "total_tokens")


def _visible(
    prompt: int | None, completion: int | None, thought: int | None, total: int | None
) -> int | None:
    """Output without reasoning. xAI's completion count excludes it already: its total shows."""
    if completion is not None and thought and total == (prompt or 0) + completion + thought:
        return completion
    return less(completion, thought)


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
