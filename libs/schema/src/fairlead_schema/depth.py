"""How deep a value from outside may be nested: the log is read only to a bounded depth."""

from collections.abc import Iterable
from typing import Any, Final

# A reader of the log gives up at 200 levels, and a value stands some levels deep in its event.
DEPTH_MAX: Final = 128


def too_deep(value: object) -> bool:
    """Whether an event that holds this value could be written but never read again."""
    level = _holders([value])
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for outer in level
            for inner in _holders(outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _holders(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]
