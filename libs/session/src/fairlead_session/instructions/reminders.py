"""Reminders: what the model is told about the moment, at its place in the history."""

from typing import Final

from fairlead_schema.message import (
    AgentSwitchedMessage,
    AssistantMessage,
    Content,
    ModelSwitchedMessage,
    SystemMessage,
    ToolBlock,
)
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session

STEERED: Final = (
    "The person sent this while you were working. Take it into account now. Then go on with the work "
    "that you had begun, unless it says otherwise."
)


def steering_reminder(session: Session, inputs: tuple[PendingInput, ...]) -> str | None:
    """The reminder after input that reaches a model between two steps of its work."""
    return STEERED if inputs and _is_at_work(session) else None


def _is_at_work(session: Session) -> bool:
    """Whether the model waits for the results of its last calls, and was not stopped."""
    if not session.execution.owed:
        return False
    silent = (AgentSwitchedMessage, ModelSwitchedMessage, SystemMessage)
    messages = (line.message for line in reversed(session.transcript.lines))
    last = next((message for message in messages if not isinstance(message, silent)), None)
    return (
        isinstance(last, AssistantMessage)
        and last.error is None
        and any(_is_local_call(block) for block in last.content)
    )


def _is_local_call(block: Content) -> bool:
    return isinstance(block, ToolBlock) and not (block.provider and block.provider.executed)
