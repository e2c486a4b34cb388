"""Overflow: what follows when a provider says that a prompt does not fit its model."""

from typing import Final

from fairlead_schema.events import SessionEvent, StepFailed, StepStarted
from fairlead_schema.provider.events import FailureKind
from fairlead_schema.tools.content import ErrorInfo
from fairlead_session.compaction.compaction import TRIES_MAX, Window
from fairlead_session.state.session import Session

OVERFLOW: Final[FailureKind] = "context-overflow"


def can_recover_overflow(session: Session, window: Window) -> bool:
    """Whether a compaction may answer an overflow that came before any output."""
    progress = session.compaction
    return window.context > 0 and not progress.overflowed and progress.tries < TRIES_MAX


def overflow_message(session: Session, message: str) -> str:
    """The error of a step that overflowed; the second overflow says that a compaction was tried."""
    if not session.compaction.overflowed:
        return message
    return f"The conversation does not fit the model's context, even after a compaction: {message}"


def fail_overflowed_step(session: Session) -> tuple[SessionEvent, ...]:
    """Fail the step of an overflow that is still open after its compaction.

    Without an open overflow, or after an interrupt, there is nothing to fail.
    """
    attempt = session.turn.attempt
    if attempt is None or attempt.overflow is None or session.execution.interrupted:
        return ()
    started = StepStarted(
        assistant_message_id=attempt.assistant_message_id, agent=attempt.agent, model=attempt.model
    )
    failed = StepFailed(
        assistant_message_id=attempt.assistant_message_id,
        error=ErrorInfo(message=attempt.overflow.message, code=OVERFLOW),
        raised=None if attempt.overflow.in_stream else True,
    )
    return (started, failed)
