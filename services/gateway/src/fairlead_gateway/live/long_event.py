"""Keeps the frame of an event below a mebibyte: existing clients end a stream at a longer one.

A long event is shown with its texts cut. `metadata.partial` says how long the event is, and where the
whole event can be read.
"""

from typing import Any, Final

from pydantic_core import to_json

FRAME_BYTES_MAX: Final = 1024 * 1024 - 256
"""Room for the `id:` and `data:` of the frame is left."""
_LENGTHS: Final = (64 * 1024, 4 * 1024, 256)


def encode_event(event: dict[str, Any]) -> bytes:
    """The JSON of one event for a frame."""
    encoded = to_json(event, inf_nan_mode="null")
    if len(encoded) <= FRAME_BYTES_MAX:
        return encoded
    durable, partial = event["durable"], {"bytes": len(encoded)}
    session_id, seq = durable["aggregateID"], durable["seq"]
    whole = f"/api/session/{session_id}/history?after={seq - 1}&limit=1"
    metadata = {**event.get("metadata", {}), "partial": {**partial, "href": whole}}
    for length in _LENGTHS:
        data = _shorten_texts(event["data"], length, whole)
        encoded = to_json({**event, "data": data, "metadata": metadata}, inf_nan_mode="null")
        if len(encoded) <= FRAME_BYTES_MAX:
            return encoded
    # It is made of very many small parts. Only what names it is left.
    data = {key: value for key, value in data.items() if isinstance(value, str | int | float)}
    return to_json({**event, "data": data, "metadata": metadata}, inf_nan_mode="null")


def _shorten_texts(value: Any, length: int, whole: str) -> Any:  # noqa: ANN401 - any JSON
    """The value with long texts cut. Half of an encoded file is none, so its place is named instead."""
    match value:
        case str() if len(value) > length:
            return whole if value.startswith("data:") else f"{value[:length]}…"
        case list():
            return [_shorten_texts(item, length, whole) for item in value]
        case dict():
            return {key: _shorten_texts(item, length, whole) for key, item in value.items()}
        case _:
            return value
