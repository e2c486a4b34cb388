"""Token counts as providers report them: some are missing, and some include others."""

from typing import Any


def count(value: object) -> int | None:
    """The count, or None for a value that is no count."""
    return int(value) if isinstance(value, int | float) and value >= 0 else None


def nested_count(raw: dict[str, Any], group: str, name: str) -> int | None:
    """A count inside a group of counts."""
    counts = raw.get(group)
    return count(counts.get(name)) if isinstance(counts, dict) else None


def subtract(whole: int | None, *parts: int | None) -> int | None:
    """The whole without its parts, never below zero. The result is unknown if the whole is."""
    return None if whole is None else max(0, whole - sum(part or 0 for part in parts))


def add(*parts: int | None) -> int | None:
    """The sum of the known parts. The result is unknown if every part is."""
    counts = [part for part in parts if part is not None]
    return sum(counts) if counts else None
