"""Commands: what a person may ask of a session, and the events that each command writes.

A decider returns the events to write, or a refusal. Nothing to do is the empty tuple.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import (
    AgentSwitched,
    BudgetSet,
    CompactionRequested,
    InterruptRequested,
    ModelSwitched,
    ResumeRequested,
    SessionArchived,
    SessionCreated,
    SessionEvent,
    SessionPurged,
    SessionUnarchived,
)
from fairlead_schema.ids import MessageId, SessionId
from fairlead_session.execution.budget import count_tokens, own_usage
from fairlead_session.execution.rest import rest_rule
from fairlead_session.next_move import is_moving
from fairlead_session.people.pending import close_asks, withdraw_continue_question
from fairlead_session.state.answers import InterruptOutcome
from fairlead_session.state.session import Session
from fairlead_session.state.usage import Budget

Events: TypeAlias = tuple[SessionEvent, ...]

UNLIMITED = Budget()


@dataclass(frozen=True, slots=True)
class SessionIdUsed:
    """The session was purged. Its id is never used again."""

    session_id: SessionId


@dataclass(frozen=True, slots=True)
class SessionIsArchived:
    """Nobody works in an archived session. Somebody may unarchive it."""

    session_id: SessionId


def create(
    session: Session, created: SessionCreated, limits: Budget = UNLIMITED
) -> Events | SessionIdUsed:
    """Create a session, once. A session that exists stays as it is, whatever the command says."""
    if session.profile is not None:
        return ()
    if session.seq:
        return SessionIdUsed(session.id)
    return (created, *set_budget(session, limits))


def interrupt(session: Session) -> Events:
    """Stop the work that runs, or would begin by itself, and close every pending ask.

    Pending input stays. Work that waits for a runner, a timer or a budget is dropped before it
    begins. A repeated interrupt writes nothing, unless somebody asked for work in between.
    """
    limited = rest_rule(session.execution.rested).limit_may_rise
    waits = is_moving(session) or (limited and _has_work(session))
    begins = waits and not session.execution.interrupted
    stopped = (InterruptRequested(),) if begins else stop_running_work(session)
    return (*close_asks(session), *stopped)


def stop_running_work(session: Session) -> Events:
    """Stop only work that a runner or a worker does now."""
    running = session.execution.owner or session.turn.attempt or session.calls
    stopping = session.execution.interrupted and not session.execution.work_requested
    return (InterruptRequested(),) if running and not stopping else ()


def interrupt_outcome(after: Session, events: Iterable[SessionEvent]) -> InterruptOutcome:
    """What an interrupt did, given the session after it and the events that it wrote.

    Work that waited for a runner, a timer or a budget has nothing open, so it rests at once.
    """
    if after.execution.interrupted:
        return "stopping"
    dropped = any(isinstance(event, InterruptRequested) for event in events)
    return "dropped" if dropped else "idle"


def request_work(session: Session) -> Events:
    """Ask for work on pending input, unless somebody did. This alone forces no turn."""
    requested = session.execution.work_requested and not _is_imported(session)
    waits = session.inbox.pending and not requested
    return (ResumeRequested(forced=False),) if waits else ()


def resume(session: Session) -> Events | SessionIsArchived:
    """Run at least one turn. A turn that runs or is about to run is enough.

    The command also answers the question whether to continue after a crash.
    """
    if is_archived(session):
        return SessionIsArchived(session.id)
    if _turn_comes(session) and not session.execution.interrupted:
        return ()
    return (*withdraw_continue_question(session), ResumeRequested())


def compact(session: Session) -> Events | SessionIsArchived:
    """Ask for a compaction, unless somebody did."""
    if is_archived(session):
        return SessionIsArchived(session.id)
    requested = session.execution.compaction_requested and not _is_imported(session)
    return () if requested else (CompactionRequested(),)


def set_budget(session: Session, limits: Budget) -> Events:
    """Set both limits. An absent limit is lifted."""
    if session.usage.budget == limits:
        return ()
    return (BudgetSet(cost=limits.cost, tokens=limits.tokens),)


def budget_lets_go_on(before: Session, limits: Budget) -> bool:
    """Whether new limits let a session go on that rests because its budget is used up."""
    limited = rest_rule(before.execution.rested).limit_may_rise
    return limited and limits.exceeds(before.usage.budget)


def switch_agent(session: Session, message_id: MessageId, agent: str) -> Events:
    """Later turns use another agent. The event is written even for the same agent."""
    if session.profile is None:
        return ()
    return (AgentSwitched(message_id=message_id, agent=agent),)


def switch_model(session: Session, message_id: MessageId, model: ModelRef) -> Events:
    """Later turns use another model. The selected model again changes nothing."""
    if session.profile is None:
        return ()
    selected = session.profile.model
    if selected is not None and selected.same_model(model):
        return ()
    return (ModelSwitched(message_id=message_id, model=model),)


def archive(session: Session) -> Events:
    """Archive the session, once. What runs or waits there stops, and asks close. The inbox stays."""
    if session.profile is None or is_archived(session):
        return ()
    return (*interrupt(session), SessionArchived())


def unarchive(session: Session) -> Events:
    """List the session again, and let it take prompts. This alone starts nothing."""
    return (SessionUnarchived(),) if is_archived(session) else ()


def is_archived(session: Session) -> bool:
    """Whether the session is archived: lists leave it out, and it takes no prompt."""
    return session.profile is not None and session.profile.archived is not None


def purge(session: Session) -> Events:
    """Delete the session for ever. The event stands alone, because it must be the last one."""
    return () if session.profile is None else (last_event(session),)


def last_event(session: Session) -> SessionPurged:
    """The event that purges a session. It keeps what the session used."""
    cost, tokens = own_usage(session)
    if session.stored is not None:
        profile = session.stored.profile
        cost, tokens = profile.cost, count_tokens(profile.tokens)
    return SessionPurged(cost=cost or None, tokens=tokens or None)


def is_at_rest(session: Session) -> bool:
    """Whether nothing happens until somebody asks: no owner, no open call, no requested work."""
    return session.execution.owner is None and not session.calls and not is_moving(session)


def _turn_comes(session: Session) -> bool:
    """Whether a turn runs, or begins soon without waiting for a back-off."""
    if _is_imported(session):
        return False
    if session.turn.attempt is not None or not all(call.by_person for call in session.calls):
        return True
    execution = session.execution
    soon = execution.owner is not None or rest_rule(execution.rested).timer != "back-off"
    return _has_work(session) and execution.work_requested and soon


def _is_imported(session: Session) -> bool:
    """Whether all that was asked for was asked elsewhere."""
    return session.execution.imported_through is not None


def _has_work(session: Session) -> bool:
    return session.execution.owed or bool(session.inbox.pending)
