"""A batch of commits becomes row changes. Pure: the store loads what it needs and writes it down.

A commit that cannot be read breaks its own session, visibly, and nothing else.
"""

from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from pydantic_core import to_json

from fairlead_eventlog.ports import LogEntry
from fairlead_projector.projection import asks, summary
from fairlead_projector.projection.log_entries import Incoming
from fairlead_projector.projection.rows import (
    AskKey,
    AskRow,
    EventRow,
    InputChange,
    InputRow,
    MessageRow,
    Projected,
    SessionRow,
    Truncation,
)
from fairlead_schema.events import (
    AgentSwitched,
    CompactionEnded,
    ContextUpdated,
    InputCancelled,
    InputEdited,
    ModelSwitched,
    PromptAdmitted,
    PromptPromoted,
    ReasoningEnded,
    ReasoningStarted,
    RevertCommitted,
    SessionEvent,
    SessionPurged,
    ShellEnded,
    ShellStarted,
    StepEnded,
    StepFailed,
    StepStarted,
    SyntheticAdded,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolProgressed,
    ToolSucceeded,
)
from fairlead_schema.ids import MessageId
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_session.fold.messages import revise

MessageKey: TypeAlias = tuple[Address, MessageId]

_CREATORS: Final = (
    PromptPromoted,
    AgentSwitched,
    ModelSwitched,
    ContextUpdated,
    SyntheticAdded,
    ShellStarted,
    CompactionEnded,
    StepStarted,
)
_REVISERS: Final = (
    StepEnded,
    StepFailed,
    TextStarted,
    TextEnded,
    ReasoningStarted,
    ReasoningEnded,
    ToolInputStarted,
    ToolInputEnded,
    ToolCalled,
    ToolProgressed,
    ToolSucceeded,
    ToolFailed,
    ShellEnded,
)
TRANSCRIBED: Final = frozenset((*_CREATORS, *_REVISERS))
_INBOX: Final = (PromptAdmitted, PromptPromoted, InputCancelled, InputEdited)
# The field by which an event names the message it creates, revises or reverts to.
_NAMES: Final[dict[type[SessionEvent], str]] = {
    kind: "message_id" if "message_id" in kind.model_fields else "assistant_message_id"
    for kind in (*_CREATORS, *_REVISERS, RevertCommitted)
}


class Poison(NamedTuple):
    """An entry that broke its session."""

    entry: LogEntry
    reason: str


@dataclass(slots=True)
class Changes:
    """Everything one transaction writes, besides the checkpoint."""

    events: list[EventRow] = field(default_factory=list)
    sessions: dict[Address, SessionRow] = field(default_factory=dict)
    inputs: dict[MessageKey, InputRow] = field(default_factory=dict)
    input_changes: dict[MessageKey, InputChange] = field(default_factory=dict)
    messages: dict[MessageKey, MessageRow] = field(default_factory=dict)
    asks: dict[AskKey, AskRow] = field(default_factory=dict)
    answers: list[AskKey] = field(default_factory=list)
    truncations: list[Truncation] = field(default_factory=list)
    poison: list[Poison] = field(default_factory=list)
    purges: dict[Address, int] = field(default_factory=dict)
    """Sessions that are gone, with the position of their last word."""


def named(batch: Iterable[Incoming]) -> list[MessageKey]:
    """The messages a batch creates or changes: the fold must know whether they exist."""
    return [
        (incoming.entry.at, getattr(event, _NAMES[type(event)]))
        for incoming in batch
        for event in (recorded.event for recorded in incoming.events)
        if type(event) in _NAMES
    ]


def reverts(incoming: Incoming) -> bool:
    """Whether a batch must end here: what is left of the session is loaded afresh."""
    return any(type(recorded.event) is RevertCommitted for recorded in incoming.events)


def purges(incoming: Incoming) -> bool:
    """Whether this is a session's last word."""
    return any(type(recorded.event) is SessionPurged for recorded in incoming.events)


def fold(sessions: MutableMapping[Address, Projected], batch: Iterable[Incoming]) -> Changes:
    """Apply a batch to the sessions it touches; those it creates are added."""
    changes = Changes()
    for incoming in batch:
        at, position = incoming.entry.at, incoming.entry.position
        if purges(incoming):
            # Whatever is known of it goes: read or not, broken or not, erased before or not.
            sessions.pop(at, None)
            changes.purges[at] = position
            continue
        session = sessions.get(at) or _begun(incoming)
        if session and session.row.broken is not None:
            continue
        reason = incoming.reason or _misplaced(session, incoming.events)
        session = session or Projected(summary.unreadable_row(at, position))
        if reason is None:
            _commit(session, incoming, changes)
        else:
            session.row.broken, session.row.seq = reason, max(session.row.seq, 1)
            changes.poison.append(Poison(incoming.entry, reason))
        session.row.position = position
        sessions[at], changes.sessions[at] = session, session.row
    return changes


def _begun(incoming: Incoming) -> Projected | None:
    if not incoming.events:
        return None
    row = summary.create_row(incoming.entry.at, incoming.events[0], incoming.entry.position)
    return None if row is None else Projected(row)


def _misplaced(session: Projected | None, events: Sequence[Recorded]) -> str | None:
    """Why these are not the session's next events: the log numbers them without gaps."""
    if session is None:
        return f"the log begins with {events[0].event.type}, not with session.created"
    for expected, recorded in enumerate(events, start=session.row.seq + 1):
        if recorded.seq != expected:
            return f"expected event {expected}, found {recorded.seq}"
    return None


def _commit(session: Projected, incoming: Incoming, changes: Changes) -> None:
    at = incoming.entry.at
    tenant, session_id = at
    for recorded, stored in zip(incoming.events, incoming.stored, strict=True):
        kind, data = type(recorded.event), to_json(stored["data"], inf_nan_mode="null")
        type_, version = stored["type"], stored["version"]
        changes.events.append(
            EventRow(
                tenant, session_id, recorded.seq, recorded.id, type_, version, recorded.time, data
            )
        )
        if kind in TRANSCRIBED:
            _transcribe(session, at, recorded, changes)
        if kind in _INBOX:
            _receive(session, at, recorded, changes)
        elif kind in asks.KINDS:
            asks.follow(session, at, recorded, changes)
        elif kind is RevertCommitted:
            _truncate(session, at, recorded, changes)
        summary.follow(session, recorded)
    session.row.seq = incoming.events[-1].seq
    asks.settle(session)


def _transcribe(session: Projected, at: Address, recorded: Recorded, changes: Changes) -> None:
    creates = isinstance(recorded.event, _CREATORS)
    *revised, last = revise(at.session_id, recorded, session) or (None,)
    for message in revised:
        assert message is not None, "only the last place may be empty"
        _place(session, at, MessageRow(session.messages[message.id].seq, message), changes)
    if last is None:
        return
    known = session.messages.get(last.id)
    if creates and known is not None:
        return  # Two creators cannot share an id: the first row stays.
    _place(session, at, MessageRow(known.seq if known else recorded.seq, last), changes)
    if creates and last.type == "assistant":
        session.newest_assistant = last.id


def _place(session: Projected, at: Address, row: MessageRow, changes: Changes) -> None:
    session.messages[row.message.id] = row
    changes.messages[at, row.message.id] = row


def _receive(session: Projected, at: Address, recorded: Recorded, changes: Changes) -> None:
    event = recorded.event
    assert isinstance(event, _INBOX), event.type
    key = (at, event.message_id)
    if isinstance(event, PromptAdmitted):
        changes.inputs[key] = InputRow(
            *at, event.message_id, recorded.seq, event.delivery, event.prompt, recorded.time
        )
        session.pending[event.message_id] = recorded.seq
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
    session.row.pending = len(session.pending)


def _truncate(session: Projected, at: Address, recorded: Recorded, changes: Changes) -> None:
    event = recorded.event
    assert isinstance(event, RevertCommitted), event.type
    boundary = session.messages.get(event.message_id)
    if boundary is None:
        return
    changes.truncations.append(Truncation(*at, boundary.seq, recorded.seq))
    session.messages = {
        id_: row for id_, row in session.messages.items() if row.seq <= boundary.seq
    }
    session.pending = {id_: seq for id_, seq in session.pending.items() if seq <= boundary.seq}
    session.row.pending = len(session.pending)
