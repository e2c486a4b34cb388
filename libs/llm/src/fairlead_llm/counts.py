"""Token counts as providers write them: some are missing, and some hold others within them."""

from typing import Any


def count(value: object) -> int | None:
    """A count, or None where there is none."""
    return int(value) if isinstance(value, int | float) and value >= 0 else None


def inner(raw: dict[str, Any], group: str, name: str) -> int | None:
    """A count in a group of counts."""
    held = raw.get(group)
    return count(held.get(name)) if isinstance(held, dict) else None


def less(whole: int | None, *parts: int | None) -> int | None:
    """What is left of a whole; never below zero, and unknown when the whole is."""
    return None if whole is None else max(0, whole - sum(part or 0 for part in parts))


def plus(*parts: int | None) -> int | None:
    """The sum of what is known; unknown when nothing is."""
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
