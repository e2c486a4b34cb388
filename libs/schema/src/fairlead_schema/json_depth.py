"""The nesting limit for JSON from outside, because the log's reader has a limit."""

from collections.abc import Iterable
from typing import Any, Final

# The log's JSON reader fails at 200 levels, and an event adds some levels around its values.
DEPTH_MAX: Final = 128


def is_too_deep(value: object) -> bool:
    """Whether the log could store an event with this value but never read the event again."""
    level = _containers([value])
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for outer in level
            for inner in _containers(outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]
