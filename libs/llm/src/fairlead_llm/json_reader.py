"""A JSON reader for provider data. It refuses values that the log could not read again."""

from typing import Any

import orjson

from fairlead_schema.json_depth import DEPTH_MAX, is_too_deep


def load_json(data: bytes | str) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON. Raises ValueError if it is malformed or nested too deeply."""
    value = orjson.loads(data)
    if _count_openings(data) > DEPTH_MAX and is_too_deep(value):
        raise ValueError(f"nested deeper than {DEPTH_MAX} levels")
    return value


def _count_openings(data: bytes | str) -> int:
    """The number of opening brackets, which bounds the nesting and is cheap to count."""
    if isinstance(data, str):
        return data.count("[") + data.count("{")
    return data.count(b"[") + data.count(b"{")
