"""The fold: one event changes the parts of a session that it is about. Total, pure, never rejects."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, get_args

from fairlead_schema.events import BudgetSet, SessionPurged, TodoUpdated
from fairlead_schema.record import Recorded
from fairlead_session.fold import (
    asks,
    calls,
    compaction,
    context,
    execution,
    inbox,
    profile,
    read_directories,
    requests,
    transcript,
    turn,
    usage,
)
from fairlead_session.frozen import replace
from fairlead_session.state.execution import Execution
from fairlead_session.state.session import Session

Reducer: TypeAlias = Callable[[Session, Any, Recorded], object]
"""Takes the session before the event, and gives one part of the session after it."""


def evolve(session: Session, recorded: Recorded) -> Session:
    """Apply one committed event. Never rejects: validity was decided before the append."""
    seq, event = recorded.seq, recorded.event
    if isinstance(event, SessionPurged):
        # Nothing is left of the session. Earlier events may be erased, so any sequence may precede.
        return Session(id=session.id, seq=seq)
    assert seq == session.seq + 1, f"{session.id}: {seq} after {session.seq}"
    changes: dict[str, Any] = {"seq": seq, "changed_at": recorded.time}
    for part, reduce in REDUCERS.get(type(event), ()):
        changes[part] = reduce(session, event, recorded)
    return replace(session, **changes)


def _evolve_execution(
    session: Session, event: execution.ExecutionEvent, recorded: Recorded
) -> Execution:
    return execution.evolve(session.execution, event, recorded.seq)


def _change_budget(session: Session, _event: BudgetSet, recorded: Recorded) -> Execution:
    after = usage.evolve(session, _event, recorded).budget
    return execution.change_budget(session.execution, before=session.usage.budget, after=after)


def _update_todos(_session: Session, event: TodoUpdated, _recorded: Recorded) -> object:
    return event.todos


_PARTS: Final[tuple[tuple[str, object, Reducer], ...]] = (
    ("profile", profile.ProfileEvent, profile.evolve),
    ("inbox", inbox.InboxEvent, inbox.evolve),
    ("transcript", transcript.TranscriptEvent, transcript.evolve),
    ("epoch", context.ContextEvent, context.evolve),
    ("execution", execution.ExecutionEvent, _evolve_execution),
    ("execution", BudgetSet, _change_budget),
    ("turn", turn.TurnEvent, turn.evolve),
    ("calls", calls.CallEvent, calls.evolve),
    ("compaction", compaction.CompactionEvent, compaction.evolve),
    ("requests", requests.RequestEvent, requests.evolve),
    ("usage", usage.UsageEvent, usage.evolve),
    ("asks", asks.AskEvent, asks.evolve),
    ("todos", TodoUpdated, _update_todos),
    ("read_directories", read_directories.ReadEvent, read_directories.evolve),
)


def _by_event() -> Iterator[tuple[type, list[tuple[str, Reducer]]]]:
    kinds = {kind for _, events, _ in _PARTS for kind in get_args(events) or (events,)}
    for kind in kinds:
        yield (
            kind,
            [
                (part, reduce)
                for part, events, reduce in _PARTS
                if kind in (get_args(events) or (events,))
            ],
        )


REDUCERS: Final[Mapping[type, list[tuple[str, Reducer]]]] = dict(_by_event())
"""The parts that each event changes. Events without an entry only advance the sequence."""
