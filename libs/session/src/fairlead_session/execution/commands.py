"""What people ask of a session's execution: stop, go on, compact, stay within a budget."""

from fairlead_schema.events import (
    BudgetSet,
    CompactionRequested,
    InterruptRequested,
    ResumeRequested,
)
from fairlead_session.next_move import is_moving
from fairlead_session.state.session import Session
from fairlead_session.state.usage import Budget


def interrupt(session: Session) -> InterruptRequested | None:
    """Stop what somebody drains or runs, or would begin by itself. Idle or told: nothing to say.

    Told again after something stirred the session, it drops that too. What waits for a runner, a
    timer or a budget is dropped before it ran, and its input stays.
    """
    waits = is_moving(session) or (session.execution.rested == "over-budget" and _promised(session))
    return InterruptRequested() if waits and not session.execution.interrupted else stop(session)


def stop(session: Session) -> InterruptRequested | None:
    """Stop only what somebody drains or runs."""
    under_way = session.execution.owner or session.turn.attempt or session.calls
    told = session.execution.interrupted and not session.execution.work_requested
    return InterruptRequested() if under_way and not told else None


def request_work(session: Session) -> ResumeRequested | None:
    """Ask for what is pending to be worked on, unless somebody asked already. It forces no turn."""
    return (
        ResumeRequested(forced=False)
        if session.inbox.pending and not session.execution.work_requested
        else None
    )


def resume(session: Session) -> ResumeRequested | None:
    """Run at least one turn. Whoever is at it already, or about to be, is joined, not forced."""
    if _at_it(session) and not session.execution.interrupted:
        return None
    return ResumeRequested()


def compact(session: Session) -> CompactionRequested | None:
    """Ask for a compaction, unless one is asked for already."""
    return None if session.execution.compaction_requested else CompactionRequested()


def set_budget(session: Session, limits: Budget) -> BudgetSet | None:
    """Set both limits; an absent one is lifted."""
    if session.usage.budget == limits:
        return None
    return BudgetSet(cost=limits.cost, tokens=limits.tokens)


def is_at_rest(session: Session) -> bool:
    """Whether nothing happens until somebody asks: nobody drains, nothing stirs, no call runs."""
    return session.execution.owner is None and not session.calls and not is_moving(session)


def _at_it(session: Session) -> bool:
    """Whether a turn is under way, or about to come without waiting for a timer."""
    if session.turn.attempt is not None or session.calls:
        return True
    soon = session.execution.owner is not None or session.execution.rested != "retry-later"
    return _promised(session) and session.execution.work_requested and soon


def _promised(session: Session) -> bool:
    return session.execution.owed or bool(session.inbox.pending)
