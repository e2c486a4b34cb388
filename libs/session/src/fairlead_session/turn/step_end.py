"""The end of a step whose local calls were settled after its stream was complete."""

from fairlead_schema.events import SessionEvent, StepEnded, StepFailed
from fairlead_session.state.turn import Attempt


def end_step(attempt: Attempt) -> tuple[SessionEvent, ...]:
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
        ),
    )
