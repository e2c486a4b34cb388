"""Arguments that stream in pieces. Each piece has a value and the JSON path of its place."""

import re
from collections.abc import Iterator
from typing import Any

from fairlead_schema.json_depth import DEPTH_MAX

_STEPS = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_VALUES = ("stringValue", "numberValue", "boolValue")
# A path may name an element far out, and the list would have to be filled up to it.
INDEX_MAX = 10_000


def put_piece(arguments: dict[str, Any], piece: dict[str, Any]) -> dict[str, Any]:
    """The arguments with this piece in its place. Text is appended to text.

    Raises KeyError or TypeError for an unusable path.
    """
    steps = list(_path_steps(str(piece["jsonPath"])))
    if len(steps) > DEPTH_MAX:
        raise KeyError("a path too long")
    value = next((piece[name] for name in _VALUES if name in piece), None)
    after = _put(arguments, steps, value)
    if not isinstance(after, dict):
        raise TypeError("arguments are no object")
    return after


def _path_steps(path: str) -> Iterator[str | int]:
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        match = _STEPS.match(path, at)
        if match is None:
            raise KeyError(path)
        bare, index, single_quoted, double_quoted = match.groups()
        names = (bare, single_quoted, double_quoted)
        yield int(index) if index is not None else next(name for name in names if name is not None)
        at = match.end()


def _put(target: Any, steps: list[str | int], value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if not steps:
        return target + value if isinstance(target, str) and isinstance(value, str) else value
    step, *rest = steps
    if isinstance(step, str):
        members = target if isinstance(target, dict) else {}
        return members | {step: _put(members.get(step), rest, value)}
    if step > INDEX_MAX:
        raise KeyError(step)
    items = list(target) if isinstance(target, list) else []
    items += [None] * (step + 1 - len(items))
    items[step] = _put(items[step], rest, value)
    return items
