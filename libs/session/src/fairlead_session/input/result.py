"""What became of a prompt, from the log alone."""

from fairlead_schema.commands.input import PromptResult
from fairlead_schema.ids import MessageId
from fairlead_schema.message import AssistantMessage, UserMessage
from fairlead_session.state.session import Session


def find_result(session: Session, message_id: MessageId) -> PromptResult | None:
    """The answer to a prompt; None for a prompt that the session never admitted."""
    admission = session.inbox.admissions.get(message_id)
    if admission is None:
        return None
    result = PromptResult(
        id=message_id,
        promoted_seq=admission.promoted_seq,
        cancelled=admission.cancelled or None,
    )
    if admission.promoted_seq is None:
        return result
    found = _find_answer(session, admission.promoted_seq)
    output = None if found is None else found.output
    return result.model_copy(update={"answer": found, "output": output})


def _find_answer(session: Session, promoted_seq: int) -> AssistantMessage | None:
    """The last step of the work on a prompt. Structured output that counts or fails ends the work.

    A prompt that joined the work is answered with it. Compacted steps are not found.
    """
    last: AssistantMessage | None = None
    for line in session.transcript.lines:
        message = line.message
        if line.seq <= promoted_seq:
            continue
        if isinstance(message, UserMessage) and _has_ended(last):
            break
        if isinstance(message, AssistantMessage):
            last = message
    return last


def _has_ended(answer: AssistantMessage | None) -> bool:
    """Whether the model had nothing left to do after a step."""
    if answer is None:
        return False
    if answer.output is not None:
        return answer.output.status != "rejected"
    return answer.finish not in {None, "tool-calls", "pause"}
