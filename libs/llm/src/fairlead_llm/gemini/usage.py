"""Token counts of Gemini: repeated on every chunk, growing; thoughts are counted beside the answer."""

from typing import Any

from fairlead_llm.counts import count, less, plus
from fairlead_schema.provider.events import Usage


def merged(known: dict[str, Any], raw: object) -> dict[str, Any]:
    """The later report wins, field by field."""
    return known | raw if isinstance(raw, dict) else known


def disjoint(raw: dict[str, Any]) -> Usage:
    """Fresh input, cache, visible output and reasoning, none counted twice (D-34)."""
    given = plus(count(raw.get("promptTokenCount")), count(raw.get("toolUsePromptTokenCount")))
    read = count(raw.get("cachedContentTokenCount"))
    made, thought = count(raw.get("candidatesTokenCount")), count(raw.get("thoughtsTokenCount"))
    total = count(raw.get("totalTokenCount"))
    return Usage(
        input=less(given, read),
        cache_read=read,
        output=made,
        reasoning=thought,
        total=plus(given, made, thought) if total is None else total,
    )
