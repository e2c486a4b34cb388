"""Recovery: settle the work that a dead owner, a stop or an unusable answer left open."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from fairlead_schema.catalog import Tokens
from fairlead_schema.events import (
    AttemptFinished,
    ExecutionRecovered,
    QuestionAsked,
    ReasoningEnded,
    SessionEvent,
    ShellEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    ToolFailed,
)
from fairlead_schema.ids import QuestionId
from fairlead_schema.message import AssistantMessage, ReasoningBlock, ToolBlock
from fairlead_schema.permission import QuestionInfo, QuestionOption, QuestionRequest
from fairlead_schema.tools.content import DECLINED, ErrorInfo, Executor
from fairlead_session.fold.calls import find_call
from fairlead_session.frozen import replace_fields
from fairlead_session.people.pending import close_asks
from fairlead_session.state.calls import UnsettledCall, may_have_effect
from fairlead_session.state.session import Session
from fairlead_session.state.turn import Attempt
from fairlead_session.turn.step_end import end_step

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
"""What follows a crash: run the turn again, ask a person, or wait until somebody resumes."""


def settle_attempt(
    session: Session, attempt: Attempt, policy: RecoveryPolicy, question_id: QuestionId
) -> tuple[SessionEvent, ...]:
    """Settle the attempt of a dead owner, by the output that is durable.

    Without output the turn is owed again. Partial output is closed as it stands, the step fails,
    and the next turn is owed. Under `ask` and `hold` that turn waits; `ask` also asks a person.
    """
    question = _ask_to_continue(session, policy, question_id)
    recovered: tuple[SessionEvent, ...] = (_recovered_event(attempt, policy), *question)
    assistant = session.transcript.find(attempt.assistant_message_id)
    if not attempt.started or not isinstance(assistant, AssistantMessage):
        return recovered
    error = ErrorInfo(message=INTERRUPTED_TURN, outcome="unknown")
    failed = StepFailed(assistant_message_id=assistant.id, error=error)
    closed = close_message(assistant, attempt.open_texts, session.calls)
    return (*closed, failed, *recovered)


def stop_open_work(session: Session) -> tuple[SessionEvent, ...]:
    """Settle everything open as interrupted, and close every pending ask.

    A stream that is complete still ends its step as it said.
    """
    stopped = _interrupt_open_work(session)
    if session.execution.declined is not None:
        stopped = tuple(_mark_declined(session, event) for event in stopped)
    return (*close_asks(session), *stopped)


def close_message(
    assistant: AssistantMessage, open_texts: tuple[str, ...], local: Iterable[UnsettledCall]
) -> tuple[SessionEvent, ...]:
    """Close every open block of a message, and fail every call in it that is not settled."""
    started = {call.call_id: call for call in local if call.assistant_message_id == assistant.id}
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
        _fail_block(assistant, block, started.get(block.id)) for block in _open_calls(assistant)
    )
    return (*texts, *reasonings, *calls)


def fail_abandoned_calls(session: Session, *, closed: int = 0) -> tuple[SessionEvent, ...]:
    """Fail the calls in active context that nobody settles any more, before a turn builds on them.

    A worker settles each local call in the log. Abandoned are inputs that never became a call, and
    hosted calls whose stream is gone. Compacted messages stay as they are. The first `closed` lines of the
    transcript have no such calls, as an earlier boundary saw.
    """
    local = {(call.assistant_message_id, call.call_id) for call in session.calls}
    return tuple(
        _fail_block(line.message, block)
        for line in session.transcript.lines.items_from(closed)
        if isinstance(line.message, AssistantMessage)
        for block in _open_calls(line.message)
        if (line.message.id, block.id) not in local
    )


def fail_unrecordable_turn(session: Session, why: str) -> tuple[SessionEvent, ...]:
    """Fail a turn whose answer does not fit the log, and close the durable part of the answer.

    The turn fails like a refused request. If workers run its calls, the step fails after them.
    """
    attempt = session.turn.attempt
    if attempt is None:
        return ()
    assistant = session.transcript.find(attempt.assistant_message_id)
    error = ErrorInfo(message=f"The answer cannot be recorded: {why}")
    failed = StepFailed(assistant_message_id=attempt.assistant_message_id, error=error, raised=True)
    if not isinstance(assistant, AssistantMessage):
        return (_step_started(attempt), failed)
    local = {call.call_id for call in session.calls if call.assistant_message_id == assistant.id}
    closed = tuple(
        event
        for event in close_message(assistant, attempt.open_texts, session.calls)
        if not (isinstance(event, ToolFailed) and event.call_id in local)
    )
    if not local:
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


def hand_over(attempt: Attempt) -> tuple[SessionEvent, ...]:
    """Leave a turn that runs to the next runner. The turn is owed again."""
    return (
        ExecutionRecovered(
            attempt_id=attempt.attempt_id,
            action="handover",
            detail="the runner left in mid-turn: the turn runs again",
        ),
    )


def _recovered_event(attempt: Attempt, policy: RecoveryPolicy) -> ExecutionRecovered:
    state = "partial output was closed" if attempt.started else "nothing had come back"
    if policy == "auto":
        detail = f"{state}: the turn runs again"
        return ExecutionRecovered(attempt_id=attempt.attempt_id, action="retried", detail=detail)
    detail = f"{state}: the turn waits until somebody resumes it"
    return ExecutionRecovered(attempt_id=attempt.attempt_id, action="held", detail=detail)


def _ask_to_continue(
    session: Session, policy: RecoveryPolicy, question_id: QuestionId
) -> tuple[QuestionAsked, ...]:
    """Ask a person whether the turn runs again. No call waits for the answer."""
    if policy != "ask":
        return ()
    request = QuestionRequest(id=question_id, session_id=session.id, questions=(_CONTINUE,))
    return (QuestionAsked(request=request),)


def _interrupt_open_work(session: Session) -> tuple[SessionEvent, ...]:
    attempt = session.turn.attempt
    assistant = session.transcript.find(attempt.assistant_message_id) if attempt else None
    if attempt is None or not isinstance(assistant, AssistantMessage):
        return tuple(map(_interrupt_call, session.calls))
    others = tuple(
        _interrupt_call(call) for call in session.calls if call.assistant_message_id != assistant.id
    )
    closed = (*others, *close_message(assistant, attempt.open_texts, session.calls))
    if attempt.finished is not None:
        return (*closed, *end_step(attempt))
    error = ErrorInfo(message=INTERRUPTED_TURN)
    return (*closed, StepFailed(assistant_message_id=assistant.id, error=error))


def _mark_declined(session: Session, event: SessionEvent) -> SessionEvent:
    """A call that nobody had begun did not run because of the decline. Others were interrupted."""
    if not isinstance(event, ToolFailed):
        return event
    call = find_call(session, event.assistant_message_id, event.call_id)
    if call is None or call.worker is not None:
        return event
    return replace_fields(event, error=replace_fields(event.error, code=DECLINED))


def _open_calls(assistant: AssistantMessage) -> tuple[ToolBlock, ...]:
    return tuple(
        block
        for block in assistant.content
        if isinstance(block, ToolBlock) and block.state.status in {"pending", "running"}
    )


def _fail_block(
    assistant: AssistantMessage, block: ToolBlock, call: UnsettledCall | None = None
) -> ToolFailed:
    if call is not None:
        return _fail_local(call)
    hosted = bool(block.provider and block.provider.executed)
    ran = hosted and block.state.status == "running"
    return _fail_call(assistant.id, block.id, hosted=hosted, is_unknown=ran)


def _interrupt_call(call: UnsettledCall) -> ToolFailed | ShellEnded:
    if call.by_person:
        return ShellEnded(
            message_id=call.assistant_message_id, call_id=call.call_id, output=INTERRUPTED_TOOL
        )
    return _fail_local(call)


def _fail_local(call: UnsettledCall) -> ToolFailed:
    unknown = may_have_effect(call)
    return _fail_call(call.assistant_message_id, call.call_id, is_unknown=unknown)


def _fail_call(
    assistant_id: str, call_id: str, *, hosted: bool = False, is_unknown: bool
) -> ToolFailed:
    return ToolFailed(
        assistant_message_id=assistant_id,
        call_id=call_id,
        error=ErrorInfo(message=INTERRUPTED_TOOL, outcome="unknown" if is_unknown else None),
        provider=Executor(executed=hosted),
    )


def _step_started(attempt: Attempt) -> StepStarted:
    return StepStarted(
        assistant_message_id=attempt.assistant_message_id, agent=attempt.agent, model=attempt.model
    )
