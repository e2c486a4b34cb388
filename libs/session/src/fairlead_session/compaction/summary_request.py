"""The request for a summary of a conversation: its prompt, model, headers and output limit."""

from typing import Final

from fairlead_schema.provider.request import Generation, ModelRequest, TextPart, UserTurn
from fairlead_session.state.session import Session
from fairlead_session.turn.request import ModelIdentity, correlation

TEMPLATE: Final = """\
Answer with this Markdown and nothing around it:

## Objective
- what the user wants, in one or two lines

## Important Details
- facts, decisions, limits and preferences that must not be lost

## Work State
### Completed
- what is done, and how that is known
### Active
- what is under way now
### Blocked
- what cannot go on, and what it waits for

## Next Move
1. the very next thing to do, then what follows it

## Relevant Files
- path: why it matters

Rules:
- Keep all sections, in this order; where there is nothing to say, write "- (none)".
- Short bullets, no prose.
- Copy names, paths, numbers, commands, ids and error texts exactly as they stand.
- Do not mention this request, nor that anything was summarised."""

FIRST: Final = (
    "Write a new summary that whoever continues this conversation can rely on alone: everything "
    "above will be gone."
)

UPDATE: Final = """\
Bring the earlier summary up to date with the conversation above, so that whoever continues can rely on it alone:
- carry over what still holds, and everything that is not finished
- where the two differ, the newer fact stands
- what has been finished since moves to Completed
- the objective and the next move are those of now"""


def summary_request(
    session: Session, identity: ModelIdentity, text: str, tokens_max: int
) -> ModelRequest:
    """One user message to the model of the session, without system text and without tools."""
    return ModelRequest(
        model=identity.api_model,
        turns=(UserTurn((TextPart(text),)),),
        generation=Generation(max_tokens=tokens_max),
        headers={**identity.headers, **correlation(session)},
        options=dict(identity.options),
    )


def prompt(conversation: str, prior: str | None) -> str:
    """The message of a summary request. An earlier summary is updated, never nested."""
    text = f"<conversation>\n{conversation}\n</conversation>"
    if prior is None:
        return f"{text}\n\n{FIRST}\n\n{TEMPLATE}"
    return f"{text}\n\n<prior-summary>\n{prior}\n</prior-summary>\n\n{UPDATE}\n\n{TEMPLATE}"
