"""Keeps an event below a mebibyte: existing clients end a stream at a longer one, and so do messages of NATS.

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
    return fit_event(event, FRAME_BYTES_MAX)[1]


def fit_event(event: dict[str, Any], bytes_max: int) -> tuple[dict[str, Any], bytes]:
    """An event as far as it fits into so many bytes, and its JSON."""
    encoded = to_json(event, inf_nan_mode="null")
    if len(encoded) <= bytes_max:
        return event, encoded
    durable, partial = event["durable"], {"bytes": len(encoded)}
    session_id, seq = durable["aggregateID"], durable["seq"]
    whole = f"/api/session/{session_id}/history?after={seq - 1}&limit=1"
    metadata = {**event.get("metadata", {}), "partial": {**partial, "href": whole}}
    for length in _LENGTHS:
        data = _shorten_texts(event["data"], length, whole)
        shown = {**event, "data": data, "metadata": metadata}
        encoded = to_json(shown, inf_nan_mode="null")
        if len(encoded) <= bytes_max:
            return shown, encoded
    # It is made of very many small parts. Only what names it is left.
    data = {key: value for key, value in data.items() if isinstance(value, str | int | float)}
    shown = {**event, "data": data, "metadata": metadata}
    return shown, to_json(shown, inf_nan_mode="null")


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
