"""Folds compactions of the turn to come: how often one began, and how it went."""

from typing import TypeAlias, assert_never

from fairlead_schema.events import (
    AttemptDispatched,
    AttemptOverflowed,
    CompactionEnded,
    CompactionFailed,
    CompactionStarted,
    ExecutionReleased,
    ResumeRequested,
    StepFailed,
    StepStarted,
)
from fairlead_schema.record import Recorded
from fairlead_session.execution.rest import REST_RULES
from fairlead_session.frozen import replace
from fairlead_session.state.session import Session
from fairlead_session.state.turn import CompactionProgress

CompactionEvent: TypeAlias = (
    AttemptDispatched
    | AttemptOverflowed
    | CompactionStarted
    | CompactionEnded
    | CompactionFailed
    | StepStarted
    | StepFailed
    | ExecutionReleased
    | ResumeRequested
)

_FRESH = CompactionProgress()


def evolve(session: Session, event: CompactionEvent, _recorded: Recorded) -> CompactionProgress:
    """Apply one event. A turn that is over, or begins anew, has no compactions behind it."""
    progress = session.compaction
    match event:
        case AttemptDispatched():
            return replace(progress, rebuilding=False) if progress.rebuilding else progress
        case AttemptOverflowed():
            if session.turn.attempt is None:
                return progress
            return replace(progress, overflowed=True, rebuilding=True)
        case CompactionStarted(reason=reason):
            rebuilding = progress.rebuilding or reason == "auto"
            return replace(progress, tries=progress.tries + 1, rebuilding=rebuilding)
        case CompactionEnded(reason=reason):
            return replace(progress, tries=0) if reason == "manual" else progress
        case CompactionFailed(reason=reason):
            if reason == "auto":
                return replace(progress, declined=True)
            return replace(progress, tries=0)
        case StepStarted() | StepFailed():
            return _FRESH
        case ExecutionReleased(reason=reason):
            return progress if REST_RULES[reason].same_turn else _FRESH
        case ResumeRequested(forced=forced):
            return progress if forced is False else _FRESH
        case _:
            assert_never(event)
