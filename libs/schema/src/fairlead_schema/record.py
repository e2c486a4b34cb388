"""The records of the log: a commit stores one or more events, encoded as JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from fairlead_schema.events import BY_TYPE, SessionEvent, SessionPurged, SessionStored
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId, EventId

LEVEL_FIRST: Final = 1
LEVEL_NEWEST: Final = 3
"""The newest level of the log's format that this release reads, and writes once it is finalised.

An event that older releases cannot read has the next level (docs/adr/0029).
"""

LEVEL_OF_IMPORTS: Final = 2
LEVEL_OF_ATTACHMENTS: Final = 2
"""Prompts with stored or taken content (`needs_level`)."""
"""A release that does not know the mark of an import would run a session before it is complete."""

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

# (type, old version) -> converts the data of that version into the data of the next version.
UPCASTERS: Final[Mapping[tuple[str, int], Upcaster]] = {}

# The constructor of a named tuple is a call more for each event.
_new: Final = tuple.__new__

# Clients read numbers as JavaScript does.
SEQ_MAX: Final = 2**53 - 1

# A cold load validates every event of a session. `model_validate` would ask its options each time.
_VALIDATE: Final[dict[tuple[str, int], Callable[[Any], SessionEvent]]] = {}


class RecordError(Exception):
    """The current release cannot read a commit. Only this session stops, with the reason."""


class NewerCommit(RecordError):
    """A newer release wrote the commit and can read it. Readers hold the session until then."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: a newer release wrote it; upgrade")


class UnknownEvent(NewerCommit):
    def __init__(self, type_: str, version: int) -> None:
        super().__init__(f"unknown event {type_}.{version}")
        self.type = type_
        self.version = version


class MalformedCommit(RecordError):
    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed commit: {reason}")


class SequenceGap(MalformedCommit):
    """Events are missing between two commits, or within one."""

    def __init__(self, seq: int, last: int) -> None:
        super().__init__(f"{seq} after {last}")


class DivergentCommit(MalformedCommit):
    """A commit claims a place that other events have."""

    def __init__(self, seq: int, last: int) -> None:
        super().__init__(
            f"{seq} after {last}, with other content than the commit that stands there"
        )


class ForeignEventId(MalformedCommit):
    """An event has the id of another event."""

    def __init__(self, seq: int, id_: str) -> None:
        super().__init__(f"event {seq} has the id {id_}, which another event has")


class ImportMark(NamedTuple):
    """Says that an import wrote the commit."""

    through: int
    """The seq of the last event that the import brings. The session does not run before it."""
    publish: bool = False
    """Whether the public feed gets the events."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that is not yet in the log, so it has no seq."""

    id: EventId
    time: int
    event: SessionEvent


class Recorded(NamedTuple):
    """An event of the log with its seq. Seqs of a session count from 1 without gaps.

    Every reader makes one of each event, and a tuple is the cheapest frozen value.
    """

    id: EventId
    seq: int
    time: int
    event: SessionEvent
    by: PrincipalName | None = None
    """The caller of the commit. The log stores it once per commit, unless an import joined commits."""
    imported: ImportMark | None = None
    """The mark of an import; None for an event that was decided here."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The events of one append. The log stores all of them or none."""

    id: CommitId
    events: tuple[Recorded, ...]

    @property
    def by(self) -> PrincipalName | None:
        """The principal on whose behalf the commit was written; None for the services' own work."""
        return self.events[0].by

    @property
    def level(self) -> int:
        """The level of the log's format that a reader of this commit must know."""
        level = max(recorded.event.needed_level for recorded in self.events)
        return level if self.events[0].imported is None else max(level, LEVEL_OF_IMPORTS)


def record(
    drafts: tuple[Draft, ...], *, after: int, by: PrincipalName | None = None
) -> tuple[Recorded, ...]:
    """Give the drafts the seqs that follow `after`, and the caller of their commit.

    The marker of a stored session has the seq 0, because the seqs of the session begin again.
    """
    if any(type(draft.event) is SessionStored for draft in drafts):
        assert len(drafts) == 1, "the marker of a stored session stands alone"
        after = -1
    return tuple(
        Recorded(draft.id, after + offset, draft.time, draft.event, by)
        for offset, draft in enumerate(drafts, start=1)
    )


def event_json(recorded: Recorded) -> dict[str, Any]:
    """The JSON form of one event in the log."""
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
    mark = commit.events[0].imported
    if mark is not None:
        return encode_import(
            commit.id, [_event_with_caller(event) for event in commit.events], mark
        )
    fields: dict[str, Any] = {"id": commit.id}
    if commit.level > LEVEL_FIRST:
        fields["level"] = commit.level
    if commit.by is not None:
        fields["by"] = commit.by
    return to_json(fields | {"events": [event_json(event) for event in commit.events]})


def encode_import(id_: CommitId, events: Sequence[Mapping[str, Any]], mark: ImportMark) -> bytes:
    """The bytes of a commit that an import writes, from stored events that each name their caller.

    The events stay as they are, so that a field which only a newer release knows is not lost.
    """
    kinds = (BY_TYPE.get((event["type"], event["version"])) for event in events)
    levels = (LEVEL_FIRST if kind is None else kind.level for kind in kinds)
    imported: dict[str, Any] = {"through": mark.through}
    if mark.publish:
        imported["publish"] = True
    fields = {"id": id_, "level": max(LEVEL_OF_IMPORTS, *levels), "imported": imported}
    return to_json(fields | {"events": events})


def _event_with_caller(recorded: Recorded) -> dict[str, Any]:
    by = {} if recorded.by is None else {"by": recorded.by}
    return event_json(recorded) | by


def decode(payload: bytes) -> Commit:
    """Read one log message. Raises NewerCommit or MalformedCommit; never skips an event."""
    return decode_json(parse(payload))


def parse(payload: bytes) -> Any:  # noqa: ANN401 - any JSON
    """The JSON of one log message. Raises MalformedCommit."""
    try:
        return from_json(payload)
    except ValueError as error:
        raise MalformedCommit(str(error)) from error


def decode_json(raw: Any) -> Commit:  # noqa: ANN401 - any JSON, which may be no commit
    """Read one log message whose JSON somebody has parsed. Raises as `decode` does."""
    try:
        if (level := raw.get("level", LEVEL_FIRST)) > LEVEL_NEWEST:
            raise NewerCommit(f"commit of level {level}")
        id_, by, mark = raw["id"], raw.get("by"), _decode_mark(raw.get("imported"))
        events = tuple([decode_event(item, by, mark) for item in raw["events"]])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedCommit(str(error)) from error
    if not isinstance(id_, str) or not events:
        raise MalformedCommit("a commit has an id and at least one event")
    if not isinstance(by, str | None):
        raise MalformedCommit(f"by is {by!r} and must be the name of a principal")
    return Commit(id_, events)


def claimed_seq(payload: bytes) -> int:
    """The seq that the last event of a log message claims, readable or not; 0 if it claims none."""
    try:
        seq = from_json(payload)["events"][-1]["seq"]
    except (ValueError, KeyError, IndexError, TypeError):
        return 0
    return seq if type(seq) is int and 0 < seq < SEQ_MAX else 0


def decode_event(
    raw: Mapping[str, Any], by: PrincipalName | None = None, mark: ImportMark | None = None
) -> Recorded:
    """Read one stored event, and upcast an older version to the current one."""
    type_, version, data = raw["type"], raw["version"], raw["data"]
    while (validate := _VALIDATE.get((type_, version)) or _find_validator(type_, version)) is None:
        upcast = UPCASTERS.get((type_, version))
        if upcast is None:
            raise UnknownEvent(type_, version)
        version, data = version + 1, upcast(data)
    try:
        event = validate(data)
    except ValidationError as error:
        raise MalformedCommit(f"{type_}.{version}: {error}") from error
    id_, seq, time = raw["id"], raw["seq"], raw["time"]
    if type(id_) is not str or type(seq) is not int or type(time) is not int:
        raise MalformedCommit(f"{type_}.{version}: id {id_!r}, seq {seq!r}, time {time!r}")
    if mark is not None and not isinstance(by := raw.get("by", by), str | None):
        raise MalformedCommit(f"{type_}.{version}: by is {by!r}")
    return _new(Recorded, (id_, seq, time, event, by, mark))


def _find_validator(type_: str, version: int) -> Callable[[Any], SessionEvent] | None:
    """The validator of an event, which is built at its first use; None if no release wrote it."""
    kind = BY_TYPE.get((type_, version))
    if kind is None:
        return None
    kind.model_rebuild()
    validate: Callable[[Any], SessionEvent] = kind.__pydantic_validator__.validate_python
    _VALIDATE[type_, version] = validate
    return validate


def _decode_mark(raw: Mapping[str, Any] | None) -> ImportMark | None:
    if raw is None:
        return None
    through, publish = raw["through"], raw.get("publish", False)
    if type(through) is not int or not 0 < through < SEQ_MAX or type(publish) is not bool:
        raise MalformedCommit(f"imported is {raw!r}")
    return ImportMark(through, publish)


ENDS_LOG: Final = frozenset({SessionPurged, SessionStored})
"""The events that erase what stands before them: the last word, and the marker of a stored session."""


def ends_log(commit: Commit) -> bool:
    """Whether nothing before the commit counts any more, because its session is purged or stored."""
    return type(commit.events[-1].event) in ENDS_LOG


def brings_news(commit: Commit, *, seq: int, last: Commit | None) -> bool:
    """Whether a commit may follow seq `seq` of its session. False: it repeats `last` exactly.

    `last` is the commit that ends with `seq`, if the reader has it. What stands before the end of a log
    may be erased, so an end may follow anything. Raises SequenceGap, DivergentCommit, ForeignEventId.
    """
    if ends_log(commit):
        return True
    if last is not None and commit == last:
        return False
    first = commit.events[0].seq
    if first <= seq:
        raise DivergentCommit(first, seq)
    taken = set() if last is None else {recorded.id for recorded in last.events}
    for recorded in commit.events:
        if recorded.seq != seq + 1:
            raise SequenceGap(recorded.seq, seq)
        if recorded.id in taken:
            raise ForeignEventId(recorded.seq, recorded.id)
        seq = recorded.seq
        taken.add(recorded.id)
    return True
