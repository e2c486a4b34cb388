"""Folds compactions of the turn to come: how often one began, and how it went."""

from typing import Final

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
from fairlead_session.fold import Reducers
from fairlead_session.frozen import replace
from fairlead_session.state.session import Session
from fairlead_session.state.turn import CompactionProgress

_FRESH: Final = CompactionProgress()


def _dispatch(
    session: Session, _event: AttemptDispatched, _recorded: Recorded
) -> CompactionProgress:
    progress = session.compaction
    return replace(progress, rebuilding=False) if progress.rebuilding else progress


def _overflow(
    session: Session, _event: AttemptOverflowed, _recorded: Recorded
) -> CompactionProgress:
    if session.turn.attempt is None:
        return session.compaction
    return replace(session.compaction, overflowed=True, rebuilding=True)


def _start(session: Session, event: CompactionStarted, _recorded: Recorded) -> CompactionProgress:
    progress = session.compaction
    rebuilding = progress.rebuilding or event.reason == "auto"
    return replace(progress, tries=progress.tries + 1, rebuilding=rebuilding)


def _end(session: Session, event: CompactionEnded, _recorded: Recorded) -> CompactionProgress:
    manual = event.reason == "manual"
    return replace(session.compaction, tries=0) if manual else session.compaction


def _fail(session: Session, event: CompactionFailed, _recorded: Recorded) -> CompactionProgress:
    if event.reason == "auto":
        return replace(session.compaction, declined=True)
    return replace(session.compaction, tries=0)


def _begin_anew(
    _session: Session, _event: StepStarted | StepFailed, _recorded: Recorded
) -> CompactionProgress:
    """A turn that is over has no compactions behind it."""
    return _FRESH


def _release(session: Session, event: ExecutionReleased, _recorded: Recorded) -> CompactionProgress:
    return session.compaction if REST_RULES[event.reason].same_turn else _FRESH


def _resume(session: Session, event: ResumeRequested, _recorded: Recorded) -> CompactionProgress:
    return session.compaction if event.forced is False else _FRESH


REDUCERS: Final[Reducers[CompactionProgress]] = {
    AttemptDispatched: _dispatch,
    AttemptOverflowed: _overflow,
    CompactionStarted: _start,
    CompactionEnded: _end,
    CompactionFailed: _fail,
    StepStarted: _begin_anew,
    StepFailed: _begin_anew,
    ExecutionReleased: _release,
    ResumeRequested: _resume,
}
