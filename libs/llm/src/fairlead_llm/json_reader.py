"""JSON of a provider, read only as deep as the log can be read again."""

from typing import Any

import orjson

from fairlead_schema.json_depth import DEPTH_MAX, is_too_deep


def loaded(data: bytes | str) -> Any:  # noqa: ANN401 - any JSON value
    """The value. Raises ValueError for what is not JSON, or nested too deep to be kept."""
    value = orjson.loads(data)
    if _openings(data) > DEPTH_MAX and is_too_deep(value):
        raise ValueError(f"nested deeper than {DEPTH_MAX} levels")
    return value


def _openings(data: bytes | str) -> int:
    """How many values open: nothing can be nested deeper, and counting costs next to nothing."""
    if isinstance(data, str):
        return data.count("[") + data.count("{")
    return data.count(b"[") + data.count(b"{")
