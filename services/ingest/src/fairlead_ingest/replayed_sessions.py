"""What a replay needs to know of a session: its end, the ids of its events, and who replays into it.

The answer is kept for the next batch as long as nobody else writes to the session.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import Head, LogEntry
from fairlead_eventlog.session_cache import Versioned
from fairlead_schema.errors import ReplayConflict, ServiceUnavailable, SessionIsStored
from fairlead_schema.ids import EventId, SessionId
from fairlead_schema.record import MalformedCommit
from fairlead_schema.session_values.stored_file import FileDigest, StoredFile
from fairlead_schema.subjects import Address
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.state.session import Session
from fairlead_session.transfer.events import StoredEvent, is_marker, stored_events

KEPT_MAX: Final = 4
"""How many sessions one ingest remembers between two batches."""


@dataclass(slots=True)
class ReplayedSession:
    """The end of a session, and the ids of all its events."""

    head: Head
    event_ids: set[EventId] = field(default_factory=set)
    marker: StoredFile | None = None
    """The file that restores the session, while it is stored."""


class ReplayedSessions:
    """The sessions that are replayed through this process."""

    def __init__(
        self, eventlog: EventLog, load: Callable[[Address], Awaitable[Versioned[Session]]]
    ) -> None:
        self._eventlog = eventlog
        self._load = load
        self._kept: OrderedDict[Address, ReplayedSession] = OrderedDict()

    def assume(self, at: Address) -> ReplayedSession | None:
        """The session as this process wrote it last. It may be old: only a write from here proves it."""
        return self._kept.get(at)

    async def load(self, at: Address) -> ReplayedSession:
        """The session as the leader of the log has it. Raises ReplayConflict if it is purged or runs.

        Raises ServiceUnavailable while a stored session is not erased: its seqs would stand there twice.
        """
        known = self._kept.get(at)
        if known is not None:
            if await self._eventlog.log.last_commit_position(at) == known.head.position:
                return known
            del self._kept[at]
        versioned = await self._load(at)
        require_replayable(versioned.state)
        known = ReplayedSession(versioned.head, marker=marker_of(versioned.state))
        async for entry in self._eventlog.shards.session_entries(at, after=0):
            if known.marker is not None and not known.event_ids and not is_marker(entry.payload):
                raise ServiceUnavailable(
                    "The projector has not erased the stored session yet: try again",
                    service="projector",
                )
            if entry.position <= versioned.head.position:
                known.event_ids |= {event["id"] for event in stored_events(entry.payload)}
        self.keep(at, known)
        return known

    def keep(self, at: Address, session: ReplayedSession) -> None:
        """Remember a session for its next batch."""
        self._kept[at] = session
        self._kept.move_to_end(at)
        if len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)

    def forget_all(self) -> None:
        """Read every session again: the log was restored from a backup."""
        self._kept.clear()

    def forget(self, at: Address) -> None:
        """Read the session again: somebody else wrote to it."""
        self._kept.pop(at, None)


def marker_of(session: Session) -> StoredFile | None:
    """The file of a stored session, until all of its events are back."""
    return None if session.stored is None else session.stored.file


def require_file(
    session_id: SessionId, marker: StoredFile | None, *, through: int, restores: FileDigest | None
) -> None:
    """Refuse a session that another file restores, or none. Raises SessionIsStored, ReplayConflict."""
    if restores is None and marker is not None:
        raise SessionIsStored(session_id, marker.name)
    if restores is None:
        return
    if marker is None:
        reason = "the session is not stored, so no file can restore it"
        raise ReplayConflict("NotStored", reason, session_id=session_id)
    if (marker.digest, marker.seq) != (restores, through):
        reason = (
            f"the session is stored in {marker.name} with the digest {marker.digest}, and not here"
        )
        raise ReplayConflict("OtherFile", reason, session_id=session_id)


def require_replayable(session: Session) -> None:
    """Refuse a session that was purged, or that somebody works on. Raises ReplayConflict."""
    if session.seq and session.profile is None:
        reason = "the session was purged, and its id is used up: import it under a new id"
        raise ReplayConflict("Purged", reason, session_id=session.id)
    if session.execution.imported_through is None and not is_at_rest(session):
        reason = "the session works here: interrupt it, or wait until it rests"
        raise ReplayConflict("Running", reason, session_id=session.id)


async def read_stored(
    eventlog: EventLog, at: Address, *, first: int, last: int
) -> dict[int, StoredEvent]:
    """The events of a session between two seqs, as they are stored. Raises LogError, RecordError."""
    head = await eventlog.log.locate(at, first - 1)
    found: dict[int, StoredEvent] = {}
    async for entry in eventlog.shards.session_entries(at, after=head.position):
        events = _events_of(entry)
        found |= {event["seq"]: event for event in events if first <= event["seq"] <= last}
        if events[-1]["seq"] >= last:
            break
    return found


def _events_of(entry: LogEntry) -> Sequence[StoredEvent]:
    events = stored_events(entry.payload)
    if not events:
        raise MalformedCommit("a commit has at least one event")
    return events
