"""JSON of a provider, read only as deep as the log can be read again."""

from collections.abc import Iterable
from typing import Any

import orjson

# A reader of the log gives up at 200 levels, and a value stands some levels deep in its event.
DEPTH_MAX = 128


def loaded(data: bytes | str) -> Any:  # noqa: ANN401 - any JSON value
    """The value. Raises ValueError for what is not JSON, or nested too deep to be kept."""
    value = orjson.loads(data)
    if _openings(data) > DEPTH_MAX and _too_deep(value):
        raise ValueError(f"nested deeper than {DEPTH_MAX} levels")
    return value


def _openings(data: bytes | str) -> int:
    """How many values open: nothing can be nested deeper, and counting costs next to nothing."""
    if isinstance(data, str):
        return data.count("[") + data.count("{")
    return data.count(b"[") + data.count(b"{")


def _too_deep(value: object) -> bool:
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
