"""What the model is told because of the options of a prompt, at the prompt's place in the history."""

from typing import Final

from fairlead_schema.message import AssistantMessage, ToolBlock
from fairlead_session.input.options import activity_after
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session
from fairlead_session.structured.contract import OUTPUT_TOOL

_FOR_ONE_PROMPT: Final = (
    "These instructions came with the last prompt. They hold until you have answered it:"
)

STRUCTURED: Final = (
    "The answer to the last prompt must be one JSON object that fits the schema which came with it. If you "
    f"have the tool {OUTPUT_TOOL}, give the answer by calling it when all other work is done. Otherwise "
    "answer with the JSON object alone."
)
COMPLAINT: Final = "Your answer does not fit its schema:"


def prompt_texts(
    session: Session, inputs: tuple[PendingInput, ...], *, anew: bool = False
) -> str | None:
    """The system texts of the inputs; `anew` also those that the model was told before."""
    activity = activity_after(session, inputs)
    new = tuple(item.prompt.system for item in inputs if item.prompt.system is not None)
    texts = activity.system if anew else new
    given = ("\n\n".join((_FOR_ONE_PROMPT, *texts)),) if texts else ()
    has_schema = any(item.prompt.output_schema is not None for item in inputs)
    if has_schema or (anew and activity.output_schema is not None):
        given = (*given, STRUCTURED)
    return "\n\n".join((*given, *_complaint(session))) or None


def _complaint(session: Session) -> tuple[str, ...]:
    """Why the last answer does not fit. The result of a call has told it already."""
    complaint = session.activity.complaint
    if complaint is None or not session.execution.owed:
        return ()
    messages = (line.message for line in reversed(session.transcript.lines))
    answers = (message for message in messages if isinstance(message, AssistantMessage))
    # A step that a crash broke off may follow the rejected one.
    rejected = next((message for message in answers if message.output is not None), None)
    blocks = () if rejected is None else rejected.content
    if any(isinstance(block, ToolBlock) and block.name == OUTPUT_TOOL for block in blocks):
        return ()
    return (f"{COMPLAINT} {complaint}. Answer again.",)


def missing_tools(names: tuple[str, ...]) -> str:
    """Tells that a selection of tools names some that nobody offers here."""
    return f"The prompt selects tools that do not exist here: {', '.join(names)}."
