"""Commits of the log with the data of their events as JSON."""

from typing import Any, NamedTuple

from fairlead_schema.events import SessionEvent
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId, EventId
from fairlead_schema.record import Commit, ImportMark, Recorded


class RawEvent(NamedTuple):
    """An event of the log: its class, and its data as JSON."""

    kind: type[SessionEvent]
    id: EventId
    seq: int
    time: int
    data: dict[str, Any]
    by: PrincipalName | None = None
    """The caller of the commit, or in a commit of an import that of the event."""
    imported: ImportMark | None = None


class RawCommit(NamedTuple):
    """A commit of the log with its events as JSON."""

    id: CommitId
    by: PrincipalName | None
    events: tuple[RawEvent, ...]


def raw_event(recorded: Recorded) -> RawEvent:
    """An event with its data as this release writes it."""
    event = recorded.event
    id_, seq, time, by = recorded.id, recorded.seq, recorded.time, recorded.by
    return RawEvent(type(event), id_, seq, time, event.wire(), by, recorded.imported)


def raw_commit(commit: Commit) -> RawCommit:
    """A commit with the data of its events as this release writes them."""
    return RawCommit(commit.id, commit.by, tuple(map(raw_event, commit.events)))
