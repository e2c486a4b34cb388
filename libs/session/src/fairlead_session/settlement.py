"""Settles what a dead owner left behind: by what is durable, never by guessing."""

from fairlead_schema.events import (
    ExecutionRecovered,
    ReasoningEnded,
    SessionEvent,
    StepFailed,
    TextEnded,
    ToolFailed,
)
from fairlead_schema.message import AssistantMessage, ReasoningBlock, TextBlock, ToolBlock
from fairlead_schema.tool import ErrorInfo, Executor
from fairlead_session.state import Attempt, Session

INTERRUPTED_TURN = "Provider turn interrupted"
INTERRUPTED_TOOL = "Tool execution interrupted"


def settle(session: Session, attempt: Attempt) -> tuple[SessionEvent, ...]:
    """What an interrupted attempt becomes.

    Without durable output it is simply owed again, within a budget. With partial output the
    output is closed as it stands, the step fails, and the turn that answers it is owed.
    """
    if not attempt.started:
        return (_retried(attempt, "dispatched, no output: the turn runs again"),)
    assistant = session.find(attempt.assistant_message_id)
    assert isinstance(assistant, AssistantMessage), "a started step has its message"
    return (
        *close(assistant),
        StepFailed(assistant_message_id=assistant.id, error=ErrorInfo(message=INTERRUPTED_TURN)),
        _retried(attempt, "partial output closed: the turn runs again"),
    )


def close(assistant: AssistantMessage) -> tuple[SessionEvent, ...]:
    """Close every block that its process left open, and fail every call it left unsettled."""
    texts = tuple(
        TextEnded(assistant_message_id=assistant.id, text_id=block.id, text="")
        for block in assistant.content
        if isinstance(block, TextBlock) and not block.text
    )
    reasonings = tuple(
        ReasoningEnded(assistant_message_id=assistant.id, reasoning_id=block.id, text="")
        for block in assistant.content
        if isinstance(block, ReasoningBlock) and block.time and block.time.completed is None
    )
    calls = tuple(
        ToolFailed(
            assistant_message_id=assistant.id,
            call_id=block.id,
            error=ErrorInfo(message=INTERRUPTED_TOOL),
            provider=Executor(executed=bool(block.provider and block.provider.executed)),
        )
        for block in assistant.content
        if isinstance(block, ToolBlock) and block.state.status in {"pending", "running"}
    )
    return (*texts, *reasonings, *calls)


def hand_over(attempt: Attempt) -> ExecutionRecovered:
    """A runner that must leave in mid-turn says so itself: the turn is owed to the next one."""
    return _retried(attempt, "the runner left in mid-turn: the turn runs again")


def _retried(attempt: Attempt, detail: str) -> ExecutionRecovered:
    return ExecutionRecovered(attempt_id=attempt.attempt_id, action="retried", detail=detail)
