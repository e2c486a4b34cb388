"""Arguments that stream in pieces: each names the place of its value by a JSON path."""

import re
from collections.abc import Iterator
from typing import Any

from fairlead_schema.json_depth import DEPTH_MAX

_STEPS = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_VALUES = ("stringValue", "numberValue", "boolValue")
# A path may ask for an element far out; what lies before it would all have to be made up.
INDEX_MAX = 10_000


def placed(arguments: dict[str, Any], piece: dict[str, Any]) -> dict[str, Any]:
    """The arguments with this piece put in its place; text goes on where text is already.

    Raises KeyError or TypeError where the path leads nowhere.
    """
    steps = list(_path(str(piece["jsonPath"])))
    if len(steps) > DEPTH_MAX:
        raise KeyError("a path too long")
    value = next((piece[name] for name in _VALUES if name in piece), None)
    placed = _put(arguments, steps, value)
    if not isinstance(placed, dict):
        raise TypeError("arguments are no object")
    return placed


def _path(path: str) -> Iterator[str | int]:
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        found = _STEPS.match(path, at)
        if found is None:
            raise KeyError(path)
        name, index, quoted, double = found.groups()
        yield (
            int(index)
            if index is not None
            else next(one for one in (name, quoted, double) if one is not None)
        )
        at = found.end()


def _put(held: Any, steps: list[str | int], value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if not steps:
        return held + value if isinstance(held, str) and isinstance(value, str) else value
    step, *rest = steps
    if isinstance(step, str):
        members = held if isinstance(held, dict) else {}
        return members | {step: _put(members.get(step), rest, value)}
    if step > INDEX_MAX:
        raise KeyError(step)
    items = list(held) if isinstance(held, list) else []
    items += [None] * (step + 1 - len(items))
    items[step] = _put(items[step], rest, value)
    return items
