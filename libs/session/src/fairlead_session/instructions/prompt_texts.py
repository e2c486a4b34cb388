"""What the model is told because of the options of a prompt, at the prompt's place in the history."""

from typing import Final

from fairlead_session.input.options import activity_after
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session

_FOR_ONE_PROMPT: Final = (
    "These instructions came with the last prompt. They hold until you have answered it:"
)


def prompt_texts(
    session: Session, inputs: tuple[PendingInput, ...], *, anew: bool = False
) -> str | None:
    """The system texts of the inputs; `anew` also those that the model was told before."""
    new = tuple(item.prompt.system for item in inputs if item.prompt.system is not None)
    texts = activity_after(session, inputs).system if anew else new
    return "\n\n".join((_FOR_ONE_PROMPT, *texts)) if texts else None


def missing_tools(names: tuple[str, ...]) -> str:
    """Tells that a selection of tools names some that nobody offers here."""
    return f"The prompt selects tools that do not exist here: {', '.join(names)}."
