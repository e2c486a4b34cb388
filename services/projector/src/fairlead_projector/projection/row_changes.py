"""Turns a batch of commits into row changes. Pure: the store loads and writes the rows.

An unreadable commit breaks its own session and nothing else. The row says why.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, get_args

from pydantic_core import to_json

from fairlead_eventlog.ports import LogEntry
from fairlead_projector.projection import asks, principal_totals, session_row, tenant_totals
from fairlead_projector.projection.counts.session_counts import COUNTS, Count
from fairlead_projector.projection.log_entries import DecodedEntry
from fairlead_projector.projection.principal_totals import PrincipalChange
from fairlead_projector.projection.release import release_name
from fairlead_projector.projection.rows import (
    AskKey,
    AskRow,
    EventRow,
    InputChange,
    InputRow,
    MessageRow,
    ProjectedSession,
    SessionIds,
    SessionRow,
    Truncation,
)
from fairlead_projector.projection.session_row import RowChange
from fairlead_projector.projection.stored.stored_rows import (
    begins_again,
    find_marker,
    note_restored,
    store_session,
)
from fairlead_projector.projection.tenant_totals import SessionShare, TenantChange
from fairlead_schema.events import (
    BY_TYPE,
    ExecutionClaimed,
    InputCancelled,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
    RevertCommitted,
    SessionEvent,
    SessionPurged,
    StepStarted,
)
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import MessageId
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_session.fold.messages import CreatingEvent, MessageEvent, revise
from fairlead_session.state.file_changes import changes_through

MessageKey: TypeAlias = tuple[Address, MessageId]

_CREATING: Final[frozenset[type[SessionEvent]]] = frozenset(get_args(CreatingEvent))
MESSAGE_EVENTS: Final[frozenset[type[SessionEvent]]] = frozenset(get_args(MessageEvent))
INPUT_EVENTS: Final = (PromptAdmitted, PromptPromoted, InputCancelled, InputEdited)
# The field that names the message which an event creates, revises or reverts to.
_MESSAGE_FIELD: Final[dict[type[SessionEvent], str]] = {
    kind: "message_id" if "message_id" in kind.model_fields else "assistant_message_id"
    for kind in (*MESSAGE_EVENTS, RevertCommitted)
}


# The constructor of a named tuple is a call more for each event.
_new: Final = tuple.__new__


class BrokenEntry(NamedTuple):
    """An entry that broke its session."""

    entry: LogEntry
    reason: str
    is_newer: bool


@dataclass(slots=True)
class RowChanges:
    """Everything that one transaction writes besides the checkpoint."""

    events: list[EventRow] = field(default_factory=list)
    sessions: dict[Address, SessionRow] = field(default_factory=dict)
    inputs: dict[MessageKey, InputRow] = field(default_factory=dict)
    input_changes: dict[MessageKey, InputChange] = field(default_factory=dict)
    messages: dict[MessageKey, MessageRow] = field(default_factory=dict)
    created: set[MessageKey] = field(default_factory=set)
    """The messages that the tables do not have."""
    created_inputs: set[MessageKey] = field(default_factory=set)
    """The inputs that the tables are known not to have."""
    asks: dict[AskKey, AskRow] = field(default_factory=dict)
    answers: list[AskKey] = field(default_factory=list)
    truncations: list[Truncation] = field(default_factory=list)
    broken: list[BrokenEntry] = field(default_factory=list)
    purges: dict[Address, int] = field(default_factory=dict)
    """Purged sessions, each with the position of its last word."""
    stores: dict[Address, int] = field(default_factory=dict)
    """Stored sessions, each with the position of its marker."""
    restarts: set[Address] = field(default_factory=set)
    """Sessions whose rows are made again, because a restore brings their first event."""
    shares_before: dict[Address, SessionShare] = field(default_factory=dict)
    shares_after_purge: dict[Address, SessionShare] = field(default_factory=dict)
    creators: dict[Address, PrincipalName | None] = field(default_factory=dict)

    @property
    def tenants(self) -> list[TenantChange]:
        """What the batch adds to the totals of its tenants."""
        after = {at: tenant_totals.share_of(row) for at, row in self.sessions.items()}
        return tenant_totals.tenant_changes(self.shares_before, after | self.shares_after_purge)

    @property
    def principals(self) -> list[PrincipalChange]:
        """What the batch adds to the totals of those who created its sessions."""
        if not any(self.creators.values()):
            return []
        after = {at: tenant_totals.share_of(row) for at, row in self.sessions.items()}
        after |= dict.fromkeys(self.purges, tenant_totals.NOTHING)
        return principal_totals.principal_changes(self.creators, self.shares_before, after)


def missing_messages(
    sessions: Mapping[Address, ProjectedSession], batch: Iterable[DecodedEntry]
) -> list[MessageKey]:
    """The messages that a batch names and that only the tables may have, each once."""
    missing: dict[MessageKey, None] = {}
    for decoded in batch:
        at = decoded.entry.at
        session = sessions.get(at)
        if session is None:
            continue  # The batch creates it.
        for recorded in decoded.events:
            field = _MESSAGE_FIELD.get(type(recorded.event))
            if field is not None and session.may_have(id_ := getattr(recorded.event, field)):
                missing[at, id_] = None
    return list(missing)


def is_revert(decoded: DecodedEntry) -> bool:
    """Whether a commit reverts its session. The batch ends here, because the store reloads the session."""
    return RevertCommitted in [type(recorded.event) for recorded in decoded.events]


def find_purge(decoded: DecodedEntry) -> SessionPurged | None:
    """The last event of a session, if the commit has it."""
    for recorded in decoded.events:
        if type(event := recorded.event) is SessionPurged:
            return event
    return None


def fold_batch(
    sessions: MutableMapping[Address, ProjectedSession], batch: Iterable[DecodedEntry]
) -> RowChanges:
    """Apply a batch to its sessions, and add the sessions that it creates."""
    changes = RowChanges()
    for decoded in batch:
        at, purged = decoded.entry.at, find_purge(decoded)
        if purged is not None and decoded.repeats:
            continue  # What the session used is counted.
        known = sessions.get(at)
        changes.shares_before.setdefault(at, _share_of(known))
        if known is not None:
            changes.creators[at] = known.row.created_by
        if purged is not None:
            # All rows of the session go, also those of a broken session.
            sessions.pop(at, None)
            changes.purges[at] = decoded.entry.position
            changes.shares_after_purge[at] = tenant_totals.share_after_purge(
                _share_of(known), purged, len(decoded.entry.payload)
            )
            continue
        if (marker := find_marker(decoded)) is not None:
            session = store_session(known, decoded, marker)
            changes.stores[at] = decoded.entry.position
        elif known is not None and known.row.broken is not None:
            continue
        else:
            session = _fold_commit(known, decoded, changes)
        changes.creators[at] = session.row.created_by
        sessions[at], changes.sessions[at] = session, session.row
    return changes


def _fold_commit(
    known: ProjectedSession | None, decoded: DecodedEntry, changes: RowChanges
) -> ProjectedSession:
    """The session after a commit. One that cannot follow breaks the session."""
    position, at, payload = decoded.entry
    session = known or _create_session(decoded)
    if known is not None and begins_again(known, decoded):
        # A restore brings the first event: all rows are made again, and the totals follow them.
        session = _create_session(decoded)
        changes.restarts.add(at)
        if session is not None:
            session.row.stored, session.row.log_bytes = known.row.stored, known.row.log_bytes
    reason = decoded.reason or _sequence_error(session, decoded)
    session = session or ProjectedSession(session_row.unreadable_row(at, position))
    if reason is None and not decoded.repeats:
        _apply_commit(session, decoded, changes)
    elif reason is not None:
        session.row.broken, session.row.seq = reason, max(session.row.seq, 1)
        session.row.broken_by = release_name()
        changes.broken.append(BrokenEntry(decoded.entry, reason, decoded.is_newer))
    session.row.position = position
    session.row.log_bytes += len(payload)
    session.message_bytes += len(payload)
    return session


def _share_of(session: ProjectedSession | None) -> SessionShare:
    return tenant_totals.share_of(None if session is None else session.row)


def _create_session(decoded: DecodedEntry) -> ProjectedSession | None:
    if not decoded.events:
        return None
    row = session_row.create_row(decoded.entry.at, decoded.events[0], decoded.entry.position)
    return None if row is None else ProjectedSession(row, ids=SessionIds(set(), set()))


def _sequence_error(session: ProjectedSession | None, decoded: DecodedEntry) -> str | None:
    """Why the events of an entry do not follow the last one; None if they do. Seqs have no gaps.

    Generations grow: a claim of an old one is no writer's.
    """
    events = decoded.events
    if session is None:
        return f"the log begins with {events[0].event.type}, not with session.created"
    if decoded.repeats:
        return None
    generation = session.row.execution.generation
    for expected, recorded in enumerate(events, start=session.row.seq + 1):
        if recorded.seq != expected:
            return f"expected event {expected}, found {recorded.seq}"
        if type(event := recorded.event) is ExecutionClaimed:
            if event.generation <= generation:
                return f"claim {event.generation} after {generation}"
            generation = event.generation
    return None


def _apply_commit(session: ProjectedSession, decoded: DecodedEntry, changes: RowChanges) -> None:
    at = decoded.entry.at
    (tenant, session_id), row = at, session.row
    for recorded, stored in zip(decoded.events, decoded.stored, strict=True):
        id_, seq, time, event, _by, _imported = recorded
        data = to_json(stored["data"], inf_nan_mode="null")
        changes.events.append(
            _new(
                EventRow,
                (tenant, session_id, seq, id_, stored["type"], stored["version"], time, data),
            )
        )
        applies, row_changes, counts = _RULES.get(type(event), _NO_RULES)
        for apply in applies:
            apply(session, at, recorded, changes)
        for change in row_changes:
            change(row, event, recorded)
        for count in counts:
            count(session, event)
    row.seq, row.pending = (
        decoded.events[-1].seq,
        len(session.pending) + len(row.execution.open_shells),
    )
    note_restored(row)
    asks.update_waiting(session)
    tenant_totals.note_started_calls(session, decoded.events)


def _apply_to_messages(
    session: ProjectedSession, at: Address, recorded: Recorded, changes: RowChanges
) -> None:
    revised = revise(at.session_id, recorded, session)
    if not revised:
        return
    for message in revised[:-1]:
        _put_message(session, at, MessageRow(session.messages[message.id].seq, message), changes)
    last = revised[-1]
    existing = session.messages.get(last.id)
    if existing is None:
        changes.created.add((at, last.id))
        if session.ids is not None:
            session.ids.messages.add(last.id)
        _put_message(session, at, MessageRow(recorded.seq, last), changes)
    elif type(recorded.event) not in _CREATING:
        _put_message(session, at, MessageRow(existing.seq, last), changes)
    else:
        return  # Two events cannot create one message: the first row stays.
    if type(recorded.event) is StepStarted:
        session.newest_assistant, session.message_bytes = last.id, 0


def _put_message(
    session: ProjectedSession, at: Address, row: MessageRow, changes: RowChanges
) -> None:
    id_ = row.message.id
    session.messages[id_] = changes.messages[at, id_] = row


def _apply_to_inputs(
    session: ProjectedSession, at: Address, recorded: Recorded, changes: RowChanges
) -> None:
    event = recorded.event
    assert isinstance(event, INPUT_EVENTS), event.type
    key = (at, event.message_id)
    if isinstance(event, PromptAdmitted):
        changes.inputs[key] = InputRow(
            *at, event.message_id, recorded.seq, event.delivery, event.prompt, recorded.time
        )
        session.pending[event.message_id] = recorded.seq
        if session.ids is not None and event.message_id not in session.ids.inputs:
            session.ids.inputs.add(event.message_id)
            changes.created_inputs.add(key)
    else:
        row = changes.inputs.get(key) or changes.input_changes.get(key)
        if row is None:
            row = changes.input_changes[key] = InputChange(*at, event.message_id)
        if isinstance(event, InputEdited):
            row.prompt, row.delivery = event.prompt, event.delivery
        elif isinstance(event, InputCancelled):
            row.cancelled = True
        else:
            row.promoted_seq = recorded.seq
        if not isinstance(event, InputEdited):
            session.pending.pop(event.message_id, None)


def _apply_revert(
    session: ProjectedSession, at: Address, recorded: Recorded, changes: RowChanges
) -> None:
    event = recorded.event
    assert isinstance(event, RevertCommitted), event.type
    last = session.messages.get(event.message_id)
    if last is None:
        return
    boundary = last.seq - 1 if event.before else last.seq
    session.row.file_changes = changes_through(session.row.file_changes, boundary)
    withdrawn = None if event.withdrawn is None else list(event.withdrawn)
    changes.truncations.append(Truncation(*at, boundary, recorded.seq, withdrawn))
    session.messages = {id_: row for id_, row in session.messages.items() if row.seq <= boundary}
    session.pending = {
        id_: seq
        for id_, seq in session.pending.items()
        if (seq <= boundary if withdrawn is None else id_ not in withdrawn)
    }


_Apply: TypeAlias = Callable[[ProjectedSession, Address, Recorded, RowChanges], None]


def _changes_of(kind: type[SessionEvent]) -> Iterator[_Apply]:
    """What an event of this class changes besides the row of its session, in order."""
    if kind in MESSAGE_EVENTS:
        yield _apply_to_messages
    if kind in INPUT_EVENTS:
        yield _apply_to_inputs
    elif kind in asks.ASK_EVENTS:
        yield asks.apply_event
    elif kind is RevertCommitted:
        yield _apply_revert


class _Rules(NamedTuple):
    """What an event of one class changes, in this order."""

    applies: tuple[_Apply, ...]
    row_changes: tuple[RowChange, ...]
    counts: tuple[Count, ...]


_NO_RULES: Final = _Rules((), (), ())
_RULES: Final[Mapping[type[SessionEvent], _Rules]] = {
    kind: _Rules(
        tuple(_changes_of(kind)),
        session_row.ROW_CHANGES.get(kind, ()),
        (COUNTS[kind],) if kind in COUNTS else (),
    )
    for kind in BY_TYPE.values()
}
