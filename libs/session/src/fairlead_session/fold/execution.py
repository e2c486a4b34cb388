"""Folds execution: who owns the session, what somebody asked for, why it rests.

The reducer needs nothing but the execution itself, so the projector uses the same one for its rows.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from fairlead_schema.events import (
    AttemptDispatched,
    AttemptOverflowed,
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    ExecutionClaimed,
    ExecutionRecovered,
    ExecutionReleased,
    InputCancelled,
    InterruptRequested,
    MoveEnded,
    MoveFailed,
    MoveRequested,
    PermissionAsked,
    PermissionReplied,
    PromptAdmitted,
    PromptPromoted,
    ResumeRequested,
    RevertCleared,
    RevertFailed,
    RevertRequested,
    RevertStaged,
    SessionEvent,
    ShellEnded,
    ShellRequested,
    ShellStarted,
    StepEnded,
    StepFailed,
    ToolCalled,
    ToolFailed,
    ToolSucceeded,
    TurnRetried,
)
from fairlead_schema.record import ImportMark
from fairlead_session.execution.rest import REST_RULES, stop_reason
from fairlead_session.frozen import replace
from fairlead_session.state.execution import (
    CallKey,
    Execution,
    Interrupt,
    OpenAttempt,
    Owner,
    RestState,
)
from fairlead_session.state.usage import Budget

# The provider rests in the middle of its own work, and expects the same request again.
PAUSE: Final = "pause"

ExecutionReducer: TypeAlias = Callable[[Execution, Any, int], Execution]
"""Takes the execution before the event, the event, and its sequence."""


def evolve(execution: Execution, event: SessionEvent, seq: int) -> Execution:
    """Apply one event with its sequence. Most events do not concern execution."""
    reduce = REDUCERS.get(type(event))
    return execution if reduce is None else reduce(execution, event, seq)


def note_import(execution: Execution, mark: ImportMark | None, seq: int) -> Execution:
    """Remember that an import wrote the event, or with None that it was decided here.

    The owner of a complete import is a runner of another deployment.
    """
    if mark is None:
        if execution.imported_through is None:
            return execution
        return replace(execution, imported_through=None)
    owner = execution.owner if seq < mark.through else None
    return replace(execution, imported_through=mark.through, owner=owner)


def change_budget(execution: Execution, *, before: Budget, after: Budget) -> Execution:
    """A raised limit asks for work, if the session rests because of the old limit."""
    if execution.rest is None or not REST_RULES[execution.rest.reason].limit_may_rise:
        return execution
    return replace(execution, work_requested=execution.work_requested or after.exceeds(before))


def _claim(execution: Execution, event: ExecutionClaimed, _seq: int) -> Execution:
    rest = execution.rest
    # A wake beyond an old limit came because the limit may have changed.
    requested = rest is not None and REST_RULES[rest.reason].limit_may_rise
    return replace(
        execution,
        owner=Owner(event.runner, event.generation),
        generation=event.generation,
        work_requested=execution.work_requested or requested,
        rest=None,
    )


def _release(execution: Execution, event: ExecutionReleased, _seq: int) -> Execution:
    """Rest without an owner.

    The rule of the reason says whether requested work stays requested, and ends an interrupt.
    """
    rule = REST_RULES[event.reason]
    released = replace(
        execution,
        owner=None,
        rest=RestState(event.reason, event.detail, event.wake_at),
        work_requested=execution.work_requested and rule.goes_on,
        compaction_requested=execution.compaction_requested and rule.goes_on,
        shell_requested=execution.shell_requested and rule.goes_on,
        failure=None,
    )
    if not rule.ends_interrupt:
        return released
    interrupt = execution.interrupt
    resumed = interrupt is not None and interrupt.resumed
    return replace(released, interrupt=None, attempt=None, owed=resumed)


def _recover(execution: Execution, event: ExecutionRecovered, _seq: int) -> Execution:
    """The turn of the lost attempt is owed again; a held session takes it only after a resume.

    A hand-over does not count as a recovery.
    """
    return replace(
        execution,
        attempt=None,
        owed=True,
        held=event.action == "held",
        recoveries=execution.recoveries + (event.action != "handover"),
    )


def _admit(execution: Execution, event: PromptAdmitted, seq: int) -> Execution:
    return execution if event.resume is False else _request_work(execution, seq)


def _resume(execution: Execution, event: ResumeRequested, seq: int) -> Execution:
    requested = replace(_request_work(execution, seq), rest=None)
    if event.forced is False:
        return requested
    interrupt = execution.interrupt and replace(execution.interrupt, resumed=True)
    return replace(requested, owed=True, held=False, recoveries=0, interrupt=interrupt)


def _request_work(execution: Execution, seq: int) -> Execution:
    return replace(execution, work_requested=True, work_requested_seq=seq, failure=None)


def _interrupt(execution: Execution, event: InterruptRequested, _seq: int) -> Execution:
    """Drop earlier requests for work. A runner settles open work; without any the session rests."""
    dropped = replace(
        execution, work_requested=False, compaction_requested=False, shell_requested=False
    )
    is_open = execution.attempt or execution.open_calls or execution.open_shells
    if execution.owner or is_open:
        return replace(dropped, interrupt=Interrupt(event.declined))
    rest = RestState(stop_reason(event.declined), event.declined)
    return replace(dropped, owed=False, interrupt=None, rest=rest)


def _request_compaction(execution: Execution, _event: CompactionRequested, _seq: int) -> Execution:
    """A compaction requests no other work: input that an interrupt kept stays pending."""
    return replace(execution, compaction_requested=True)


def _end_compaction(execution: Execution, _event: CompactionEnded, _seq: int) -> Execution:
    """A turn that did not fit is owed again, now that history is shorter."""
    ended = replace(execution, compaction_requested=False)
    if execution.attempt is None or not execution.attempt.overflowed:
        return ended
    return replace(ended, attempt=None, owed=True)


def _fail_compaction(execution: Execution, event: CompactionFailed, _seq: int) -> Execution:
    if event.reason == "auto":
        return execution
    return replace(execution, compaction_requested=False)


def _request_revert(execution: Execution, _event: RevertRequested, _seq: int) -> Execution:
    """A revert requests no other work, and an interrupt does not end it: it takes a moment only."""
    return replace(execution, revert_requested=True)


def _end_revert(
    execution: Execution, _event: RevertStaged | RevertCleared | RevertFailed, _seq: int
) -> Execution:
    return replace(execution, revert_requested=False)


def _request_move(execution: Execution, _event: MoveRequested, _seq: int) -> Execution:
    return replace(execution, move_requested=True)


def _end_move(execution: Execution, _event: MoveFailed | MoveEnded, _seq: int) -> Execution:
    return replace(execution, move_requested=False)


def _promote(execution: Execution, _event: PromptPromoted, _seq: int) -> Execution:
    return replace(execution, owed=True, rest=None, held=False)


def _dispatch(execution: Execution, _event: AttemptDispatched, seq: int) -> Execution:
    return replace(execution, attempt=OpenAttempt(seq), owed=False)


def _overflow(execution: Execution, _event: AttemptOverflowed, _seq: int) -> Execution:
    attempt = execution.attempt and replace(execution.attempt, overflowed=True)
    return replace(execution, attempt=attempt)


def _retry(execution: Execution, _event: TurnRetried, _seq: int) -> Execution:
    return replace(execution, attempt=None, owed=True)


def owes_another_turn(execution: Execution, event: StepEnded) -> bool:
    """Whether the model has not seen the results of the calls that this step made, or only paused.

    Structured output decides it alone: the model repairs one that does not fit, and else has answered.
    """
    if event.output is not None:
        return event.output.status == "rejected"
    answered = execution.answered_message_id == event.assistant_message_id
    return event.finish == PAUSE or answered


def _end_step(execution: Execution, event: StepEnded, _seq: int) -> Execution:
    owed = owes_another_turn(execution, event)
    return replace(execution, attempt=None, owed=owed, recoveries=0)


def _fail_step(execution: Execution, event: StepFailed, _seq: int) -> Execution:
    """Remember how a request failed, unless somebody asked for work after it left."""
    dispatched = execution.attempt.seq if execution.attempt else 0
    final = event.raised is True and execution.work_requested_seq <= dispatched
    failure = event.error.message if final else None
    return replace(execution, attempt=None, owed=False, failure=failure)


def _call(execution: Execution, event: ToolCalled, _seq: int) -> Execution:
    if event.provider.executed:
        return execution
    key = CallKey(event.assistant_message_id, event.call_id)
    return replace(execution, open_calls=(*execution.open_calls, key))


def _settle(execution: Execution, event: ToolSucceeded | ToolFailed, _seq: int) -> Execution:
    """The last settlement asks for work, because the session may be parked.

    A settlement that an interrupt caused asks for nothing: pending input keeps waiting.
    """
    key, local = CallKey(event.assistant_message_id, event.call_id), not event.provider.executed
    answered = event.assistant_message_id if local else execution.answered_message_id
    if key not in execution.open_calls:
        return replace(execution, answered_message_id=answered)
    still_open = tuple(call for call in execution.open_calls if call != key)
    requested = execution.work_requested or not (still_open or execution.interrupted)
    return replace(
        execution, answered_message_id=answered, open_calls=still_open, work_requested=requested
    )


def _request_shell(execution: Execution, event: ShellRequested, _seq: int) -> Execution:
    """Ask a runner for the command alone. The command of a prompt waits for the prompt."""
    if event.prompt_id is not None:
        return execution
    key = CallKey(event.message_id, event.call_id)
    return replace(execution, shell_requested=True, open_shells=(*execution.open_shells, key))


def _start_shell(execution: Execution, event: ShellStarted, _seq: int) -> Execution:
    key = CallKey(event.message_id, event.call_id)
    if event.agent is None or key in execution.open_shells:
        return execution
    return replace(execution, open_shells=(*execution.open_shells, key))


def _end_shell(execution: Execution, event: ShellEnded, _seq: int) -> Execution:
    key = CallKey(event.message_id, event.call_id)
    return replace(
        execution, open_shells=tuple(shell for shell in execution.open_shells if shell != key)
    )


def _cancel_shell(execution: Execution, event: InputCancelled, _seq: int) -> Execution:
    """A cancelled command needs no runner. Other cancelled input changes nothing here."""
    id_ = event.message_id
    left = tuple(shell for shell in execution.open_shells if shell.assistant_message_id != id_)
    if left == execution.open_shells:
        return execution
    return replace(execution, open_shells=left, shell_requested=bool(left))


def _ask(execution: Execution, event: PermissionAsked, _seq: int) -> Execution:
    source = event.request.source
    if source is None:
        return execution
    key = CallKey(source.message_id, source.call_id)
    return replace(execution, call_asks={**execution.call_asks, event.request.id: key})


def _reply(execution: Execution, event: PermissionReplied, _seq: int) -> Execution:
    """An approval asks for work, because the session may be parked on its call."""
    key = execution.call_asks.get(event.request_id)
    if key is None:
        return execution
    asks = {ask: call for ask, call in execution.call_asks.items() if ask != event.request_id}
    permitted = event.reply != "reject" and key in execution.open_calls
    requested = execution.work_requested or (permitted and not execution.interrupted)
    return replace(execution, call_asks=asks, work_requested=requested)


REDUCERS: Final[Mapping[type, ExecutionReducer]] = {
    ExecutionClaimed: _claim,
    ExecutionReleased: _release,
    ExecutionRecovered: _recover,
    PromptAdmitted: _admit,
    ResumeRequested: _resume,
    InterruptRequested: _interrupt,
    CompactionRequested: _request_compaction,
    CompactionEnded: _end_compaction,
    CompactionFailed: _fail_compaction,
    RevertRequested: _request_revert,
    RevertStaged: _end_revert,
    RevertCleared: _end_revert,
    RevertFailed: _end_revert,
    MoveRequested: _request_move,
    MoveFailed: _end_move,
    MoveEnded: _end_move,
    PromptPromoted: _promote,
    AttemptDispatched: _dispatch,
    AttemptOverflowed: _overflow,
    TurnRetried: _retry,
    StepEnded: _end_step,
    StepFailed: _fail_step,
    ToolCalled: _call,
    ToolSucceeded: _settle,
    ToolFailed: _settle,
    ShellRequested: _request_shell,
    ShellStarted: _start_shell,
    ShellEnded: _end_shell,
    InputCancelled: _cancel_shell,
    PermissionAsked: _ask,
    PermissionReplied: _reply,
}

KEEPS_IMPORT: Final = frozenset({InputCancelled})
"""Events that begin nothing: what was asked for at the origin of an import still waits after them."""
