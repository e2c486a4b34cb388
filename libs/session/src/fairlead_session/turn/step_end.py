"""The end of a step whose local calls were settled after its stream was complete."""

from dataclasses import dataclass
from typing import Final

from fairlead_schema.events import SessionEvent, StepEnded, StepFailed
from fairlead_schema.message import AssistantMessage
from fairlead_session.state.session import Session
from fairlead_session.state.turn import Attempt


@dataclass(frozen=True, slots=True)
class EndFiles:
    """The files after a step, and which of them it changed, as far as that is known."""

    snapshot: str | None = None
    files: tuple[str, ...] | None = None


NO_FILES: Final = EndFiles()


def files_before(session: Session, attempt: Attempt) -> str | None:
    """The snapshot of the files before a step, if there is one."""
    message = session.transcript.find(attempt.assistant_message_id)
    snapshot = message.snapshot if isinstance(message, AssistantMessage) else None
    return None if snapshot is None else snapshot.start


def end_step(attempt: Attempt, files: EndFiles = NO_FILES) -> tuple[SessionEvent, ...]:
    """End the step as its stream said. Nothing, if the stream is not complete."""
    finished = attempt.finished
    if finished is None:
        return ()
    if finished.error is not None:
        return (
            StepFailed(
                assistant_message_id=attempt.assistant_message_id,
                error=finished.error,
                raised=finished.raised or None,
            ),
        )
    return (
        StepEnded(
            assistant_message_id=attempt.assistant_message_id,
            finish=finished.finish,
            cost=finished.cost,
            tokens=finished.tokens,
            output=finished.output,
            snapshot=files.snapshot,
            files=files.files,
        ),
    )
