"""The fold: one event changes the parts of a session that it is about. Total, pure, never rejects."""

from collections.abc import Mapping
from typing import Final

from fairlead_schema.events import (
    BudgetSet,
    CompactionEnded,
    RevertCommitted,
    SessionPurged,
    SessionStored,
    TodoUpdated,
    ToolSucceeded,
)
from fairlead_schema.events.asks import Todo
from fairlead_schema.ids import MessageId
from fairlead_schema.record import Recorded
from fairlead_session.fold import (
    Reducer,
    Reducers,
    asks,
    calls,
    compaction,
    context,
    execution,
    inbox,
    model_requests,
    profile,
    read_directories,
    transcript,
    turn,
    usage,
)
from fairlead_session.frozen import from_fields
from fairlead_session.idempotency.reducers import REDUCERS as ANSWER_REDUCERS
from fairlead_session.relocation.reducers import REDUCERS as RELOCATION_REDUCERS
from fairlead_session.revert.reducers import REDUCERS as REVERT_REDUCERS
from fairlead_session.state.execution import Execution
from fairlead_session.state.file_changes import (
    FileChanges,
    changes_after,
    changes_through,
    settle_changes,
)
from fairlead_session.state.session import Session
from fairlead_session.state.usage import Budget


def evolve(session: Session, recorded: Recorded) -> Session:
    """Apply one committed event. Never rejects: validity was decided before the append."""
    event, seq = recorded.event, recorded.seq
    kind = type(event)
    if kind is SessionPurged:
        # Nothing is left of the session. Earlier events may be erased, so any sequence may precede.
        return Session(id=session.id, seq=seq)
    if isinstance(event, SessionStored):
        # All events are in a file. A restore brings them back behind the marker, from seq 1 on.
        return Session(id=session.id, changed_at=recorded.time, stored=event)
    assert seq == session.seq + 1, f"{session.id}: {seq} after {session.seq}"
    fields = vars(session).copy()
    fields["seq"], fields["changed_at"] = seq, recorded.time
    for part, reduce in REDUCERS[kind]:
        fields[part] = reduce(session, event, recorded)
    if recorded.imported is not None:
        fields["execution"] = execution.note_import(fields["execution"], recorded.imported, seq)
        if session.stored is not None and seq == session.stored.file.seq:
            fields["stored"] = None
    return from_fields(Session, fields)


def _of_execution(kind: type, reduce: execution.ExecutionReducer) -> Reducer[Execution]:
    """Execution is folded without the rest of the session, because the projector folds it too."""

    def reduce_local(session: Session, event: object, recorded: Recorded) -> Execution:
        reduced = reduce(session.execution, event, recorded.seq)
        return (
            reduced if kind in execution.KEEPS_IMPORT else execution.note_import(reduced, None, 0)
        )

    return reduce_local


def _change_budget(session: Session, event: BudgetSet, _recorded: Recorded) -> Execution:
    after = Budget(event.cost, event.tokens)
    changed = execution.change_budget(session.execution, before=session.usage.budget, after=after)
    return execution.note_import(changed, None, 0)


def _update_todos(_session: Session, event: TodoUpdated, _recorded: Recorded) -> tuple[Todo, ...]:
    return event.todos


def _add_file_changes(session: Session, event: ToolSucceeded, _recorded: Recorded) -> FileChanges:
    call = calls.find_call(session, event.assistant_message_id, event.call_id)
    if call is None:
        return session.file_changes
    seq = _message_seq(session, event.assistant_message_id)
    return changes_after(session.file_changes, call.tool, event.structured, message_seq=seq)


def _message_seq(session: Session, message_id: MessageId) -> int:
    """The sequence of a message; 0 for a message that history no longer holds."""
    found = (
        line.seq for line in reversed(session.transcript.lines) if line.message.id == message_id
    )
    return next(found, 0)


def _settle_file_changes(
    session: Session, _event: CompactionEnded, _recorded: Recorded
) -> FileChanges:
    return settle_changes(session.file_changes)


def _revert_file_changes(
    session: Session, event: RevertCommitted, _recorded: Recorded
) -> FileChanges:
    boundary = transcript.revert_seq(session, event)
    if boundary is None:
        return session.file_changes
    return changes_through(session.file_changes, boundary)


_PARTS: Final[Mapping[str, Reducers[object]]] = {
    "profile": profile.REDUCERS,
    "inbox": inbox.REDUCERS,
    "transcript": transcript.REDUCERS,
    "epoch": context.REDUCERS,
    "execution": {
        **{kind: _of_execution(kind, reduce) for kind, reduce in execution.REDUCERS.items()},
        BudgetSet: _change_budget,
    },
    "turn": turn.REDUCERS,
    "activity": turn.ACTIVITY_REDUCERS,
    "calls": calls.REDUCERS,
    "compaction": compaction.REDUCERS,
    "requests": model_requests.REDUCERS,
    "usage": usage.REDUCERS,
    "file_changes": {
        ToolSucceeded: _add_file_changes,
        CompactionEnded: _settle_file_changes,
        RevertCommitted: _revert_file_changes,
    },
    "asks": asks.REDUCERS,
    "todos": {TodoUpdated: _update_todos},
    "read_directories": read_directories.REDUCERS,
    "revert": REVERT_REDUCERS,
    "relocation": RELOCATION_REDUCERS,
    "answers": ANSWER_REDUCERS,
}

REDUCERS: Final[Mapping[type, tuple[tuple[str, Reducer[object]], ...]]] = {
    kind: tuple((part, table[kind]) for part, table in _PARTS.items() if kind in table)
    for kind in {kind for table in _PARTS.values() for kind in table}
}
"""The parts that each event changes, each with its reducer."""
