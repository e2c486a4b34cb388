"""Turns of a real stack as its clients read them, for the golden pairs of every protocol."""

import json
from pathlib import Path
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

_FOLDER: Final = Path(__file__).parent / "protocol_turns"
TURNS: Final = tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


def read_turn(name: str) -> list[Json]:
    """The events of a turn, durable ones and fragments, in the order in which a client got them."""
    events: list[Json] = json.loads((_FOLDER / f"{name}.json").read_text())
    return events


def durable(events: list[Json]) -> list[Json]:
    """What the log has of a turn: everything but the fragments."""
    return [event for event in events if event["seq"] is not None]


def envelopes(events: list[Json]) -> list[Json]:
    """The events in the form of the stream."""
    return [_envelope(event) for event in events]


def released(reason: str) -> Json:
    """The event by which a session rests, in the form of the stream."""
    data = {"timestamp": 1700000000000, "reason": reason}
    return _envelope({"type": "execution.released", "data": data, "seq": 999})


def _envelope(event: Json) -> Json:
    durable = {} if event["seq"] is None else {"durable": {"seq": event["seq"], "version": 1}}
    return {"type": event["type"], "data": event["data"], **durable}
