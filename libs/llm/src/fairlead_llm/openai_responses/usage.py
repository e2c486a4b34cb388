"""Token counts: inclusive totals become disjoint parts; what is unknown stays None."""

from typing import Any

from fairlead_schema.provider import Usage


def disjoint(raw: object) -> Usage:
    """Fresh input, cache, visible output and reasoning, none counted twice (D-34)."""
    if not isinstance(raw, dict):
        return Usage()
    given, made = _count(raw.get("input_tokens")), _count(raw.get("output_tokens"))
    read = _inner(raw, "input_tokens_details", "cached_tokens")
    written = _inner(raw, "input_tokens_details", "cache_write_tokens")
    thought = _inner(raw, "output_tokens_details", "reasoning_tokens")
    total = _count(raw.get("total_tokens"))
    if total is None and given is not None and made is not None:
        total = given + made
    return Usage(
        input=_minus(given, read, written),
        cache_read=read,
        cache_write=written,
        output=_minus(made, thought),
        reasoning=thought,
        total=total,
    )


def _minus(whole: int | None, *parts: int | None) -> int | None:
    return None if whole is None else max(0, whole - sum(part or 0 for part in parts))


def _inner(raw: dict[str, Any], group: str, name: str) -> int | None:
    held = raw.get(group)
    return _count(held.get(name)) if isinstance(held, dict) else None


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 0 else None
