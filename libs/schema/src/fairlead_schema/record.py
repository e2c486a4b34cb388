"""How events stand in the log: drafts become recorded events inside one atomic commit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from fairlead_schema.events import BY_TYPE, SessionEvent
from fairlead_schema.ids import CommitId, EventId

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

# (type, old version) -> turns the data of that version into the data of the next one.
UPCASTERS: Final[Mapping[tuple[str, int], Upcaster]] = {}


class RecordError(Exception):
    """A commit that today's code cannot read. The session stops with this reason; others go on."""


class UnknownEvent(RecordError):
    def __init__(self, type_: str, version: int) -> None:
        super().__init__(f"unknown event {type_}.{version}: a newer release wrote it; upgrade")
        self.type = type_
        self.version = version


class MalformedCommit(RecordError):
    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed commit: {reason}")


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that is decided but not yet in the log."""

    id: EventId
    time: int
    event: SessionEvent


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with the sequence the log gave it: contiguous per session, from 1."""

    id: EventId
    seq: int
    time: int
    event: SessionEvent


@dataclass(frozen=True, slots=True)
class Commit:
    """What one append wrote: one or more events, all or nothing."""

    id: CommitId
    events: tuple[Recorded, ...]


def record(drafts: tuple[Draft, ...], *, after: int) -> tuple[Recorded, ...]:
    """Number drafts as they will stand after sequence `after`."""
    return tuple(
        Recorded(draft.id, after + offset, draft.time, draft.event)
        for offset, draft in enumerate(drafts, start=1)
    )


def event_json(recorded: Recorded) -> dict[str, Any]:
    """One event as the log stores it."""
    event = recorded.event
    return {
        "id": recorded.id,
        "seq": recorded.seq,
        "type": event.type,
        "version": event.version,
        "time": recorded.time,
        "data": event.model_dump(mode="json", by_alias=True, exclude_none=True),
    }


def encode(commit: Commit) -> bytes:
    """The bytes of one log message."""
    return to_json({"id": commit.id, "events": [event_json(event) for event in commit.events]})


def decode(payload: bytes) -> Commit:
    """Read one log message. Raises UnknownEvent or MalformedCommit, never skips."""
    try:
        raw = from_json(payload)
        id_, events = raw["id"], tuple(decode_event(item) for item in raw["events"])
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedCommit(str(error)) from error
    if not isinstance(id_, str) or not events:
        raise MalformedCommit("a commit has an id and at least one event")
    return Commit(id_, events)


def decode_event(raw: Mapping[str, Any]) -> Recorded:
    """Read one stored event, lifting an older version to today's."""
    type_, version, data = raw["type"], raw["version"], raw["data"]
    while (type_, version) not in BY_TYPE:
        upcast = UPCASTERS.get((type_, version))
        if upcast is None:
            raise UnknownEvent(type_, version)
        version, data = version + 1, upcast(data)
    try:
        event = BY_TYPE[type_, version].model_validate(data)
    except ValidationError as error:
        raise MalformedCommit(f"{type_}.{version}: {error}") from error
    id_, seq, time = raw["id"], raw["seq"], raw["time"]
    if (type(id_), type(seq), type(time)) != (str, int, int):
        raise MalformedCommit(f"{type_}.{version}: id {id_!r}, seq {seq!r}, time {time!r}")
    return Recorded(id_, seq, time, event)
