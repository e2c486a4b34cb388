"""Folds execution: who owns the session, what somebody asked for, why it rests.

The reducer needs nothing but the execution itself, so the projector uses the same one for its rows.
"""

from typing import Final, TypeAlias, assert_never

from fairlead_schema.events import (
    AttemptDispatched,
    AttemptOverflowed,
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    ExecutionClaimed,
    ExecutionRecovered,
    ExecutionReleased,
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    PromptAdmitted,
    PromptPromoted,
    ResumeRequested,
    StepEnded,
    StepFailed,
    ToolCalled,
    ToolFailed,
    ToolSucceeded,
    TurnRetried,
)
from fairlead_schema.events.execution import RestReason
from fairlead_session.execution.rest import REST_RULES
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

_OwnershipEvent: TypeAlias = ExecutionClaimed | ExecutionReleased | ExecutionRecovered
_CommandEvent: TypeAlias = (
    PromptAdmitted
    | InterruptRequested
    | ResumeRequested
    | CompactionRequested
    | CompactionEnded
    | CompactionFailed
)
_TurnEvent: TypeAlias = (
    PromptPromoted | AttemptDispatched | AttemptOverflowed | TurnRetried | StepEnded | StepFailed
)
_CallEvent: TypeAlias = (
    ToolCalled | ToolSucceeded | ToolFailed | PermissionAsked | PermissionReplied
)
ExecutionEvent: TypeAlias = _OwnershipEvent | _CommandEvent | _TurnEvent | _CallEvent


def evolve(execution: Execution, event: ExecutionEvent, seq: int) -> Execution:
    """Apply one event. `seq` is the sequence of the event."""
    match event:
        case (
            PromptPromoted() | AttemptDispatched() | AttemptOverflowed() | TurnRetried()
            | StepEnded() | StepFailed()
        ):  # fmt: skip
            return _evolve_turn(execution, event, seq)
        case ExecutionClaimed() | ExecutionReleased() | ExecutionRecovered():
            return _evolve_ownership(execution, event)
        case (
            PromptAdmitted() | InterruptRequested() | ResumeRequested() | CompactionRequested()
            | CompactionEnded() | CompactionFailed()
        ):  # fmt: skip
            return _evolve_command(execution, event, seq)
        case (
            ToolCalled() | ToolSucceeded() | ToolFailed() | PermissionAsked()
            | PermissionReplied()
        ):  # fmt: skip
            return _evolve_call(execution, event)
        case _:
            assert_never(event)


def change_budget(execution: Execution, *, before: Budget, after: Budget) -> Execution:
    """A raised limit asks for work, if the session rests because of the old limit."""
    if execution.rest is None or not REST_RULES[execution.rest.reason].limit_may_rise:
        return execution
    return replace(execution, work_requested=execution.work_requested or after.exceeds(before))


def _evolve_ownership(execution: Execution, event: _OwnershipEvent) -> Execution:
    match event:
        case ExecutionClaimed(runner=runner, generation=generation):
            return _claim(execution, Owner(runner, generation))
        case ExecutionReleased():
            return _release(execution, event)
        case ExecutionRecovered(action=action):
            # The turn of the lost attempt is owed again, now or when somebody resumes. A runner
            # that leaves in good order does not count as a crash.
            return replace(
                execution,
                attempt=None,
                owed=True,
                held=action == "held",
                recoveries=execution.recoveries + (action != "handover"),
            )
        case _:
            assert_never(event)


def _claim(execution: Execution, owner: Owner) -> Execution:
    rest = execution.rest
    # A wake beyond an old limit came because the limit may have changed.
    requested = rest is not None and REST_RULES[rest.reason].limit_may_rise
    return replace(
        execution,
        owner=owner,
        generation=owner.generation,
        work_requested=execution.work_requested or requested,
        rest=None,
    )


def _release(execution: Execution, event: ExecutionReleased) -> Execution:
    rule = REST_RULES[event.reason]
    released = replace(
        execution,
        owner=None,
        rest=RestState(event.reason, event.detail, event.wake_at),
        work_requested=execution.work_requested and rule.goes_on,
        compaction_requested=execution.compaction_requested and rule.goes_on,
        failure=None,
    )
    if not rule.ends_interrupt:
        return released
    interrupt = execution.interrupt
    resumed = interrupt is not None and interrupt.resumed
    return replace(released, interrupt=None, attempt=None, owed=resumed)


def _evolve_command(execution: Execution, event: _CommandEvent, seq: int) -> Execution:
    match event:
        case PromptAdmitted(resume=resume):
            return execution if resume is False else _request_work(execution, seq)
        case InterruptRequested(declined=declined):
            return _interrupt(execution, declined)
        case ResumeRequested(forced=forced):
            requested = replace(_request_work(execution, seq), rest=None)
            return requested if forced is False else _force_turn(requested)
        case CompactionRequested():
            # A compaction requests no other work: input that an interrupt kept stays pending.
            return replace(execution, compaction_requested=True)
        case CompactionEnded():
            return _end_compaction(execution)
        case CompactionFailed(reason=reason):
            failed = reason != "auto"
            return replace(execution, compaction_requested=False) if failed else execution
        case _:
            assert_never(event)


def _request_work(execution: Execution, seq: int) -> Execution:
    return replace(execution, work_requested=True, work_requested_seq=seq, failure=None)


def _force_turn(execution: Execution) -> Execution:
    interrupt = execution.interrupt and replace(execution.interrupt, resumed=True)
    return replace(execution, owed=True, held=False, recoveries=0, interrupt=interrupt)


def _interrupt(execution: Execution, declined: str | None) -> Execution:
    """Drop earlier requests for work. A runner settles open work; without any the session rests."""
    dropped = replace(execution, work_requested=False, compaction_requested=False)
    if execution.owner or execution.attempt or execution.open_calls:
        return replace(dropped, interrupt=Interrupt(declined))
    reason: RestReason = "declined" if declined else "interrupted"
    return replace(dropped, owed=False, interrupt=None, rest=RestState(reason, declined))


def _end_compaction(execution: Execution) -> Execution:
    """A turn that did not fit is owed again, now that history is shorter."""
    ended = replace(execution, compaction_requested=False)
    if execution.attempt is None or not execution.attempt.overflowed:
        return ended
    return replace(ended, attempt=None, owed=True)


def _evolve_turn(execution: Execution, event: _TurnEvent, seq: int) -> Execution:
    match event:
        case PromptPromoted():
            return replace(execution, owed=True, rest=None, held=False)
        case AttemptDispatched():
            return replace(execution, attempt=OpenAttempt(seq), owed=False)
        case AttemptOverflowed():
            attempt = execution.attempt and replace(execution.attempt, overflowed=True)
            return replace(execution, attempt=attempt)
        case TurnRetried():
            return replace(execution, attempt=None, owed=True)
        case StepEnded(assistant_message_id=message_id, finish=finish):
            # The model has not seen the results of the calls that this step made.
            owed = finish == PAUSE or execution.answered_message_id == message_id
            return replace(execution, attempt=None, owed=owed, recoveries=0)
        case StepFailed():
            return _fail_step(execution, event)
        case _:
            assert_never(event)


def _fail_step(execution: Execution, event: StepFailed) -> Execution:
    """Remember how a request failed, unless somebody asked for work after it left."""
    dispatched = execution.attempt.seq if execution.attempt else 0
    final = event.raised is True and execution.work_requested_seq <= dispatched
    failure = event.error.message if final else None
    return replace(execution, attempt=None, owed=False, failure=failure)


def _evolve_call(execution: Execution, event: _CallEvent) -> Execution:
    match event:
        case ToolCalled():
            if event.provider.executed:
                return execution
            key = CallKey(event.assistant_message_id, event.call_id)
            return replace(execution, open_calls=(*execution.open_calls, key))
        case ToolSucceeded() | ToolFailed():
            return _settle_call(execution, event)
        case PermissionAsked(request=request):
            if request.source is None:
                return execution
            key = CallKey(request.source.message_id, request.source.call_id)
            return replace(execution, call_asks={**execution.call_asks, request.id: key})
        case PermissionReplied():
            return _reply(execution, event)
        case _:
            assert_never(event)


def _settle_call(execution: Execution, event: ToolSucceeded | ToolFailed) -> Execution:
    """The last settlement asks for work, because the session may be parked.

    A settlement that an interrupt caused asks for nothing: pending input keeps waiting.
    """
    key, local = CallKey(event.assistant_message_id, event.call_id), not event.provider.executed
    answered = event.assistant_message_id if local else execution.answered_message_id
    if key not in execution.open_calls:
        return replace(execution, answered_message_id=answered)
    rest = tuple(call for call in execution.open_calls if call != key)
    requested = execution.work_requested or not (rest or execution.interrupted)
    return replace(
        execution, answered_message_id=answered, open_calls=rest, work_requested=requested
    )


def _reply(execution: Execution, event: PermissionReplied) -> Execution:
    """An approval asks for work, because the session may be parked on its call."""
    key = execution.call_asks.get(event.request_id)
    if key is None:
        return execution
    asks = {ask: call for ask, call in execution.call_asks.items() if ask != event.request_id}
    permitted = event.reply != "reject" and key in execution.open_calls
    requested = execution.work_requested or (permitted and not execution.interrupted)
    return replace(execution, call_asks=asks, work_requested=requested)
