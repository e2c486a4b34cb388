"""Folds the provider turn: its attempt, its step, and the counts that limit it."""

from collections.abc import Callable
from typing import TypeAlias, assert_never

from fairlead_schema.events import (
    AttemptDispatched,
    AttemptFinished,
    AttemptOverflowed,
    CompactionEnded,
    ExecutionRecovered,
    ExecutionReleased,
    PromptPromoted,
    ResumeRequested,
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
from fairlead_session.frozen import replace
from fairlead_session.input.fingerprint import call_fingerprint
from fairlead_session.state.session import Session
from fairlead_session.state.turn import Attempt, FinishedStream, Overflow, Turn

_AttemptEvent: TypeAlias = (
    AttemptDispatched
    | AttemptFinished
    | AttemptOverflowed
    | StepStarted
    | StepEnded
    | StepFailed
    | TextStarted
    | TextEnded
)
_LimitEvent: TypeAlias = (
    PromptPromoted
    | TurnRetried
    | ToolCalled
    | ResumeRequested
    | ExecutionRecovered
    | ExecutionReleased
    | CompactionEnded
)
TurnEvent: TypeAlias = _AttemptEvent | _LimitEvent


def evolve(session: Session, event: TurnEvent, _recorded: Recorded) -> Turn:
    """Apply one event of a provider turn."""
    match event:
        case (
            AttemptDispatched() | AttemptFinished() | AttemptOverflowed() | StepStarted()
            | StepEnded() | StepFailed() | TextStarted() | TextEnded()
        ):  # fmt: skip
            return _evolve_attempt(session, event)
        case (
            PromptPromoted() | TurnRetried() | ToolCalled() | ResumeRequested()
            | ExecutionRecovered() | ExecutionReleased() | CompactionEnded()
        ):  # fmt: skip
            return _evolve_limits(session.turn, event)
        case _:
            assert_never(event)


def _evolve_attempt(session: Session, event: _AttemptEvent) -> Turn:
    turn, attempt = session.turn, session.turn.attempt
    match event:
        case AttemptDispatched():
            return replace(turn, attempt=_open(session, event), step=event.step)
        case StepStarted():
            started = None if attempt is None else replace(attempt, started=True)
            return replace(turn, attempt=started, retries=0)
        case StepEnded() | StepFailed():
            return replace(turn, attempt=None)
        case TextStarted(text_id=text_id):
            return _change_texts(turn, event, lambda texts: (*texts, text_id))
        case TextEnded(text_id=text_id):
            return _change_texts(
                turn, event, lambda texts: tuple(text for text in texts if text != text_id)
            )
        case AttemptFinished():
            return turn if attempt is None else replace(turn, attempt=_finish(attempt, event))
        case AttemptOverflowed():
            overflow = Overflow(event.message, event.in_stream)
            return turn if attempt is None else _with(turn, replace(attempt, overflow=overflow))
        case _:
            assert_never(event)


def _evolve_limits(turn: Turn, event: _LimitEvent) -> Turn:
    match event:
        case PromptPromoted():
            return replace(turn, step=0, retries=0, repeats=0)
        case TurnRetried():
            # The same turn is made again, so its step does not count twice.
            return _repeat_step(replace(turn, retries=turn.retries + 1), turn.step)
        case ExecutionRecovered():
            return _repeat_step(turn, turn.step)
        case CompactionEnded():
            overflowed = turn.attempt is not None and turn.attempt.overflow is not None
            return _repeat_step(turn, turn.attempt.step) if turn.attempt and overflowed else turn
        case ToolCalled():
            return turn if event.provider.executed else _count_repeats(turn, event)
        case ResumeRequested(forced=forced):
            return turn if forced is False else replace(turn, step=0, retries=0, repeats=0)
        case ExecutionReleased(reason=reason):
            return replace(turn, attempt=None) if REST_RULES[reason].ends_interrupt else turn
        case _:
            assert_never(event)


def _open(session: Session, event: AttemptDispatched) -> Attempt:
    return Attempt(
        attempt_id=event.attempt_id,
        assistant_message_id=event.assistant_message_id,
        agent=event.agent,
        model=event.model,
        step=event.step,
        generation=session.execution.generation,
        estimate=event.estimate,
    )


def _finish(attempt: Attempt, event: AttemptFinished) -> Attempt:
    finished = FinishedStream(
        event.finish, event.cost, event.tokens, event.error, raised=event.raised is True
    )
    return replace(attempt, finished=finished)


def _with(turn: Turn, attempt: Attempt) -> Turn:
    return replace(turn, attempt=attempt)


def _repeat_step(turn: Turn, step: int) -> Turn:
    return replace(turn, attempt=None, step=max(0, step - 1))


def _count_repeats(turn: Turn, event: ToolCalled) -> Turn:
    call = call_fingerprint(event.tool, event.input)
    repeats = turn.repeats + 1 if call == turn.last_call else 1
    return replace(turn, last_call=call, repeats=repeats)


def _change_texts(
    turn: Turn,
    event: TextStarted | TextEnded,
    change: Callable[[tuple[str, ...]], tuple[str, ...]],
) -> Turn:
    """Track the open text blocks. An ended block may be empty, so its text does not tell."""
    attempt = turn.attempt
    if attempt is None or attempt.assistant_message_id != event.assistant_message_id:
        return turn
    return replace(turn, attempt=replace(attempt, open_texts=change(attempt.open_texts)))
