"""Settles what was left open: by a dead owner, or because somebody asked to stop."""

from typing import Final, Literal, TypeAlias

from fairlead_schema.catalog import Tokens
from fairlead_schema.events import (
    AttemptFinished,
    ExecutionRecovered,
    QuestionAsked,
    ReasoningEnded,
    SessionEvent,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    ToolFailed,
)
from fairlead_schema.ids import QuestionId
from fairlead_schema.message import AssistantMessage, ReasoningBlock, ToolBlock
from fairlead_schema.permission import QuestionInfo, QuestionOption, QuestionRequest
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.people.pending import close_asks
from fairlead_session.state.session import Session
from fairlead_session.state.turn import Attempt

INTERRUPTED_TURN = "Provider turn interrupted"
INTERRUPTED_TOOL = "Tool execution interrupted"

CONTINUE: Final = "Continue"
_CONTINUE: Final = QuestionInfo(
    question="The last turn was interrupted by a crash. Shall it run again?",
    header="Interrupted",
    options=(
        QuestionOption(label=CONTINUE, description="Run the turn again"),
        QuestionOption(label="Stop", description="Leave it; a resume or a new prompt goes on"),
    ),
    multiple=False,
    custom=False,
)

RecoveryPolicy: TypeAlias = Literal["auto", "ask", "hold"]
"""What follows a crash: go on, ask a person, or wait until one resumes."""


def settle_attempt(
    session: Session, attempt: Attempt, policy: RecoveryPolicy = "auto"
) -> tuple[SessionEvent, ...]:
    """What a dead owner's attempt becomes, by what is durable.

    Without output it is simply owed again. With partial output the output is closed as it stands,
    the step fails, and the turn that answers it is owed. Under `ask` and `hold` the turn waits.
    """
    recovered = _recovered(attempt, policy)
    assistant = session.transcript.find(attempt.assistant_message_id)
    if not attempt.started or not isinstance(assistant, AssistantMessage):
        return (recovered,)
    failed = StepFailed(
        assistant_message_id=assistant.id, error=ErrorInfo(message=INTERRUPTED_TURN)
    )
    return (*close_message(assistant, attempt.open_texts), failed, recovered)


def ask_to_continue(session: Session, question_id: QuestionId) -> QuestionAsked:
    """Asks a person whether a turn that a crash interrupted runs again; no call waits for it."""
    request = QuestionRequest(id=question_id, session_id=session.id, questions=(_CONTINUE,))
    return QuestionAsked(request=request)


def stop_open_work(session: Session) -> tuple[SessionEvent, ...]:
    """Everything open, settled as interrupted, what waits for people too.

    A finished stream still ends its step.
    """
    return (*close_asks(session), *_stop(session))


def _stop(session: Session) -> tuple[SessionEvent, ...]:
    attempt = session.turn.attempt
    assistant = session.transcript.find(attempt.assistant_message_id) if attempt else None
    if attempt is None or not isinstance(assistant, AssistantMessage):
        return tuple(
            _interrupted(call.assistant_message_id, call.call_id) for call in session.calls
        )
    others = tuple(
        _interrupted(call.assistant_message_id, call.call_id)
        for call in session.calls
        if call.assistant_message_id != assistant.id
    )
    if attempt.finished is not None:
        return (*others, *close_message(assistant, attempt.open_texts), end_step(attempt))
    error = ErrorInfo(message=INTERRUPTED_TURN)
    failed = StepFailed(assistant_message_id=assistant.id, error=error)
    return (*others, *close_message(assistant, attempt.open_texts), failed)


def end_step(attempt: Attempt) -> StepEnded | StepFailed:
    """The end of a step whose stream was over before its calls were."""
    assert attempt.finished is not None, "the stream is complete"
    if attempt.finished.error is not None:
        return StepFailed(
            assistant_message_id=attempt.assistant_message_id,
            error=attempt.finished.error,
            raised=attempt.finished.raised or None,
        )
    return StepEnded(
        assistant_message_id=attempt.assistant_message_id,
        finish=attempt.finished.finish,
        cost=attempt.finished.cost,
        tokens=attempt.finished.tokens,
    )


def close_message(
    assistant: AssistantMessage, open_texts: tuple[str, ...]
) -> tuple[SessionEvent, ...]:
    """Close every block that its process left open, and fail every call it left unsettled."""
    texts = tuple(
        TextEnded(assistant_message_id=assistant.id, text_id=text_id, text="")
        for text_id in open_texts
    )
    reasonings = tuple(
        ReasoningEnded(assistant_message_id=assistant.id, reasoning_id=block.id, text="")
        for block in assistant.content
        if isinstance(block, ReasoningBlock) and block.time and block.time.completed is None
    )
    calls = tuple(
        _interrupted(
            assistant.id, block.id, hosted=bool(block.provider and block.provider.executed)
        )
        for block in assistant.content
        if isinstance(block, ToolBlock) and block.state.status in {"pending", "running"}
    )
    return (*texts, *reasonings, *calls)


def fail_abandoned_calls(session: Session) -> tuple[SessionEvent, ...]:
    """Fail the calls in active context that nobody will settle any more, before a turn builds on them.

    A local call of the log is its worker's; what is left are inputs that never became a call and
    hosted calls whose stream is gone. What compaction took out of the context stays as it was.
    """
    ours = {(call.assistant_message_id, call.call_id) for call in session.calls}
    return tuple(
        _interrupted(
            line.message.id, block.id, hosted=bool(block.provider and block.provider.executed)
        )
        for line in session.transcript.lines
        if isinstance(line.message, AssistantMessage)
        for block in line.message.content
        if isinstance(block, ToolBlock)
        and block.state.status in {"pending", "running"}
        and (line.message.id, block.id) not in ours
    )


def fail_unrecordable_turn(session: Session, why: str) -> tuple[SessionEvent, ...]:
    """What a turn becomes whose answer the log cannot hold: closed as it is durable, and failed.

    It failed like a request that was refused. Calls that a worker has are awaited before that is said.
    """
    attempt = session.turn.attempt
    if attempt is None:
        return ()
    assistant = session.transcript.find(attempt.assistant_message_id)
    error = ErrorInfo(message=f"The answer cannot be recorded: {why}")
    failed = StepFailed(assistant_message_id=attempt.assistant_message_id, error=error, raised=True)
    if not isinstance(assistant, AssistantMessage):
        return (_started(attempt), failed)
    ours = {call.call_id for call in session.calls if call.assistant_message_id == assistant.id}
    closed = tuple(
        event
        for event in close_message(assistant, attempt.open_texts)
        if not (isinstance(event, ToolFailed) and event.call_id in ours)
    )
    if not ours:
        return (*closed, failed)
    finished = AttemptFinished(
        attempt_id=attempt.attempt_id,
        assistant_message_id=assistant.id,
        finish="error",
        cost=0.0,
        tokens=Tokens(),
        error=error,
        raised=True,
    )
    return (*closed, finished)


def hand_over(attempt: Attempt) -> ExecutionRecovered:
    """A runner that must leave in mid-turn says so itself: the turn is owed to the next one."""
    return ExecutionRecovered(
        attempt_id=attempt.attempt_id,
        action="handover",
        detail="the runner left in mid-turn: the turn runs again",
    )


def _recovered(attempt: Attempt, policy: RecoveryPolicy) -> ExecutionRecovered:
    found = "partial output was closed" if attempt.started else "nothing had come back"
    if policy == "auto":
        detail = f"{found}: the turn runs again"
        return ExecutionRecovered(attempt_id=attempt.attempt_id, action="retried", detail=detail)
    detail = f"{found}: the turn waits until somebody resumes it"
    return ExecutionRecovered(attempt_id=attempt.attempt_id, action="held", detail=detail)


def _interrupted(assistant_id: str, call_id: str, *, hosted: bool = False) -> ToolFailed:
    return ToolFailed(
        assistant_message_id=assistant_id,
        call_id=call_id,
        error=ErrorInfo(message=INTERRUPTED_TOOL),
        provider=Executor(executed=hosted),
    )


def fail_overflowed_step(attempt: Attempt) -> tuple[SessionEvent, ...]:
    """The step that a provider refused for its size, when no compaction could help."""
    assert attempt.overflow is not None, "the provider said that it does not fit"
    return (
        _started(attempt),
        StepFailed(
            assistant_message_id=attempt.assistant_message_id,
            error=ErrorInfo(message=attempt.overflow.message),
            raised=None if attempt.overflow.in_stream else True,
        ),
    )


def _started(attempt: Attempt) -> StepStarted:
    return StepStarted(
        assistant_message_id=attempt.assistant_message_id, agent=attempt.agent, model=attempt.model
    )
