"""Folds the provider turn: its attempt, its step, the counts that limit it, and its activity.

The options of an activity hold until the model has answered, or until another prompt begins an activity.
After a failure or an interrupt they stay, because somebody may resume the same work.
"""

from typing import Final

from fairlead_schema.events import (
    AttemptDispatched,
    AttemptFinished,
    AttemptOverflowed,
    CompactionEnded,
    ContextUpdated,
    ExecutionRecovered,
    ExecutionReleased,
    PromptPromoted,
    ResumeRequested,
    RevertCommitted,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolCalled,
    TurnRetried,
)
from fairlead_schema.record import Recorded
from fairlead_session.execution.rest import REST_RULES
from fairlead_session.fold import Reducers
from fairlead_session.fold.execution import owes_another_turn
from fairlead_session.frozen import replace
from fairlead_session.input.fingerprint import call_fingerprint
from fairlead_session.state.activity import NO_OPTIONS, Activity
from fairlead_session.state.session import Session
from fairlead_session.state.turn import Attempt, FinishedStream, Overflow, Turn


def _dispatch(session: Session, event: AttemptDispatched, _recorded: Recorded) -> Turn:
    attempt = Attempt(
        attempt_id=event.attempt_id,
        assistant_message_id=event.assistant_message_id,
        agent=event.agent,
        model=event.model,
        step=event.step,
        generation=session.execution.generation,
        estimate=event.estimate,
        trace=event.trace,
    )
    return replace(session.turn, attempt=attempt, step=event.step)


def _start_step(session: Session, _event: StepStarted, _recorded: Recorded) -> Turn:
    turn, attempt = session.turn, session.turn.attempt
    started = None if attempt is None else replace(attempt, started=True)
    return replace(turn, attempt=started, retries=0)


def _end_step(session: Session, event: StepEnded, _recorded: Recorded) -> Turn:
    """A repair of structured output is the same step again: its own limit bounds it."""
    turn = replace(session.turn, attempt=None)
    rejected = event.output is not None and event.output.status == "rejected"
    return _repeat_step(turn, turn.step) if rejected else turn


def _fail_step(session: Session, _event: StepFailed, _recorded: Recorded) -> Turn:
    return replace(session.turn, attempt=None)


def _start_text(session: Session, event: TextStarted, _recorded: Recorded) -> Turn:
    """Track the open text blocks. An ended block may be empty, so its text does not tell."""
    turn, attempt = session.turn, session.turn.attempt
    if attempt is None or attempt.assistant_message_id != event.assistant_message_id:
        return turn
    texts = (*attempt.open_texts, event.text_id)
    return replace(turn, attempt=replace(attempt, open_texts=texts))


def _end_text(session: Session, event: TextEnded, _recorded: Recorded) -> Turn:
    turn, attempt = session.turn, session.turn.attempt
    if attempt is None or attempt.assistant_message_id != event.assistant_message_id:
        return turn
    texts = tuple(text for text in attempt.open_texts if text != event.text_id)
    return replace(turn, attempt=replace(attempt, open_texts=texts))


def _finish(session: Session, event: AttemptFinished, _recorded: Recorded) -> Turn:
    turn, attempt = session.turn, session.turn.attempt
    if attempt is None:
        return turn
    finished = FinishedStream(
        event.finish,
        event.cost,
        event.tokens,
        event.error,
        raised=event.raised is True,
        output=event.output,
    )
    return replace(turn, attempt=replace(attempt, finished=finished))


def _overflow(session: Session, event: AttemptOverflowed, _recorded: Recorded) -> Turn:
    turn, attempt = session.turn, session.turn.attempt
    if attempt is None:
        return turn
    overflow = Overflow(event.message, event.in_stream)
    return replace(turn, attempt=replace(attempt, overflow=overflow))


def _promote(session: Session, _event: PromptPromoted, _recorded: Recorded) -> Turn:
    """New input begins all counts anew."""
    return replace(session.turn, step=0, retries=0, repeats=0)


def _retry(session: Session, _event: TurnRetried, _recorded: Recorded) -> Turn:
    turn = session.turn
    return _repeat_step(replace(turn, retries=turn.retries + 1), turn.step)


def _recover(session: Session, _event: ExecutionRecovered, _recorded: Recorded) -> Turn:
    return _repeat_step(session.turn, session.turn.step)


def _compact(session: Session, _event: CompactionEnded, _recorded: Recorded) -> Turn:
    turn, attempt = session.turn, session.turn.attempt
    overflowed = attempt is not None and attempt.overflow is not None
    return _repeat_step(turn, attempt.step) if attempt and overflowed else turn


def _call(session: Session, event: ToolCalled, _recorded: Recorded) -> Turn:
    """Count how often the model makes the same call in a row, and note what may change files."""
    turn = session.turn
    if event.provider.executed:
        return turn
    call = call_fingerprint(event.tool, event.input)
    repeats = turn.repeats + 1 if call == turn.last_call else 1
    attempt = turn.attempt
    if attempt is not None and event.retry != "pure":
        attempt = replace(attempt, may_change_files=True)
    return replace(turn, last_call=call, repeats=repeats, attempt=attempt)


def _resume(session: Session, event: ResumeRequested, _recorded: Recorded) -> Turn:
    if event.forced is False:
        return session.turn
    return replace(session.turn, step=0, retries=0, repeats=0)


def _release(session: Session, event: ExecutionReleased, _recorded: Recorded) -> Turn:
    if REST_RULES[event.reason].ends_interrupt:
        return replace(session.turn, attempt=None)
    return session.turn


def _repeat_step(turn: Turn, step: int) -> Turn:
    """The same turn is made again, so its step does not count twice."""
    return replace(turn, attempt=None, step=max(0, step - 1))


def _join_activity(session: Session, event: PromptPromoted, _recorded: Recorded) -> Activity:
    """A prompt joins the activity of an owed turn. Otherwise it begins another one."""
    current = session.activity if session.execution.owed else NO_OPTIONS
    return current.with_prompt(event.prompt)


def _tell_activity(session: Session, _event: ContextUpdated, _recorded: Recorded) -> Activity:
    """A system message says what there was to say."""
    activity = session.activity
    return activity if activity.complaint is None else replace(activity, complaint=None)


def _end_activity(session: Session, event: StepEnded, _recorded: Recorded) -> Activity:
    if not owes_another_turn(session.execution, event):
        return NO_OPTIONS
    activity, output = session.activity, event.output
    if output is None:
        return activity if activity.complaint is None else replace(activity, complaint=None)
    return replace(activity, repairs=activity.repairs + 1, complaint=output.error)


def _revert_activity(_session: Session, _event: RevertCommitted, _recorded: Recorded) -> Activity:
    return NO_OPTIONS


REDUCERS: Final[Reducers[Turn]] = {
    AttemptDispatched: _dispatch,
    AttemptFinished: _finish,
    AttemptOverflowed: _overflow,
    StepStarted: _start_step,
    StepEnded: _end_step,
    StepFailed: _fail_step,
    TextStarted: _start_text,
    TextEnded: _end_text,
    PromptPromoted: _promote,
    TurnRetried: _retry,
    ExecutionRecovered: _recover,
    CompactionEnded: _compact,
    ToolCalled: _call,
    ResumeRequested: _resume,
    ExecutionReleased: _release,
}

ACTIVITY_REDUCERS: Final[Reducers[Activity]] = {
    PromptPromoted: _join_activity,
    ContextUpdated: _tell_activity,
    StepEnded: _end_activity,
    RevertCommitted: _revert_activity,
}
