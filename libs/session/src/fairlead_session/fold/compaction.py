"""Folds compaction and pruning: what was asked for, how often it was tried, what it took."""

from typing import Final, TypeAlias, assert_never

from fairlead_schema.events import (
    AttemptOverflowed,
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    CompactionUsed,
    ContextPruned,
)
from fairlead_schema.events.execution import RestReason
from fairlead_session.frozen import replace
from fairlead_session.state import CompactionProgress, Overflow, PruneCutoff, Session

CompactionEvent: TypeAlias = (
    AttemptOverflowed
    | CompactionRequested
    | CompactionStarted
    | CompactionEnded
    | CompactionFailed
    | CompactionUsed
    | ContextPruned
)

# The turn goes on by itself: what was tried for it still counts.
SAME_TURN: Final = frozenset[RestReason](
    {"handover", "retry-later", "context-unavailable", "over-budget", "budget-unknown"}
)


def evolve(session: Session, event: CompactionEvent, at: int) -> Session:
    """Apply one event of compaction."""
    state = session.compacting
    match event:
        case CompactionRequested():
            # It stirs nothing else: input that an interrupt kept is not asked for by it.
            return replace(session, compaction_requested=True)
        case CompactionStarted(reason=reason):
            rebuilding = state.rebuilding or reason == "auto"
            tried = replace(state, tries=state.tries + 1, rebuilding=rebuilding)
            return replace(session, compacting=tried)
        case CompactionEnded():
            return _ended(session, event)
        case CompactionFailed(reason="auto"):
            return replace(session, compacting=replace(state, declined=True))
        case CompactionFailed():
            done = replace(state, tries=0)
            return replace(session, compaction_requested=False, compacting=done)
        case CompactionUsed():
            return _used(session, event, at)
        case AttemptOverflowed():
            return _overflowed(session, event)
        case ContextPruned():
            return replace(session, pruned=PruneCutoff(event.through_seq, event.over_bytes))
        case _:
            assert_never(event)


def _ended(session: Session, event: CompactionEnded) -> Session:
    """History begins anew; a turn that overflowed is owed again, under its own number."""
    ended = replace(session, compaction_requested=False, asked=None, pruned=None)
    if event.reason == "manual":
        ended = replace(ended, compacting=replace(session.compacting, tries=0))
    if session.attempt is None or session.attempt.overflow is None:
        return ended
    return replace(ended, attempt=None, owed=True, step=max(0, session.attempt.step - 1))


def _overflowed(session: Session, event: AttemptOverflowed) -> Session:
    if session.attempt is None:
        return session
    attempt = replace(session.attempt, overflow=Overflow(event.message, event.in_stream))
    state = replace(session.compacting, overflowed=True, rebuilding=True)
    return replace(session, attempt=attempt, compacting=state)


def _used(session: Session, event: CompactionUsed, at: int) -> Session:
    if session.profile is None:
        return session
    profile = replace(
        session.profile,
        cost=session.profile.cost + event.cost,
        tokens=session.profile.tokens.plus(event.tokens),
        updated=at,
    )
    return replace(session, profile=profile)


def settled(session: Session) -> Session:
    """The turn is over, or begun anew: nothing was tried for the next one."""
    return replace(session, compacting=CompactionProgress())
