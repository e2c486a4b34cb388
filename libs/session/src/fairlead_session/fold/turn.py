"""Folds provider turns: attempts, steps, retries, and what they used."""

from collections.abc import Callable
from typing import Final, TypeAlias, assert_never

from fairlead_schema.events import (
    AttemptDispatched,
    AttemptFinished,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    TurnRetried,
)
from fairlead_schema.message import AssistantMessage, ToolBlock
from fairlead_session.compaction import estimate
from fairlead_session.fold.compaction import settled
from fairlead_session.frozen import replace
from fairlead_session.state import Attempt, FinishedStream, LastRequest, Session

# The provider rests in the middle of its own work.
PAUSE: Final = "pause"

TurnEvent: TypeAlias = (
    AttemptDispatched
    | AttemptFinished
    | StepStarted
    | StepEnded
    | StepFailed
    | TextStarted
    | TextEnded
    | TurnRetried
)


def evolve(session: Session, event: TurnEvent, at: int) -> Session:
    """Apply one event of a provider turn."""
    match event:
        case AttemptDispatched():
            sent = replace(session, attempt=_attempt(session, event), owed=False, step=event.step)
            built = replace(session.compacting, rebuilding=False)
            return replace(sent, asked=_asked(session, event), compacting=built)
        case AttemptFinished():
            if session.attempt is None:
                return session
            finished = FinishedStream(
                event.finish, event.cost, event.tokens, event.error, raised=event.raised is True
            )
            return replace(session, attempt=replace(session.attempt, finished=finished))
        case TurnRetried():
            # The same turn is made again: it does not count twice.
            again = replace(session, attempt=None, owed=True, step=max(0, session.step - 1))
            return replace(again, retries=session.retries + 1)
        case StepStarted():
            attempt = session.attempt
            started = None if attempt is None else replace(attempt, started=True)
            return replace(settled(session), attempt=started, retries=0)
        case StepEnded():
            told = _learned(session, event)
            ended = replace(told, attempt=None, owed=_continues(session, event), recoveries=0)
            return _totalled(ended, event, at)
        case StepFailed():
            since = session.attempt.seq if session.attempt else 0
            fails = event.raised is True and session.stirred_seq <= since
            failure = event.error.message if fails else None
            return replace(settled(session), attempt=None, owed=False, failure=failure)
        case TextStarted(text_id=text_id):
            return _with_texts(session, event, lambda texts: (*texts, text_id))
        case TextEnded(text_id=text_id):
            return _with_texts(
                session, event, lambda texts: tuple(one for one in texts if one != text_id)
            )
        case _:
            assert_never(event)


def _attempt(session: Session, event: AttemptDispatched) -> Attempt:
    return Attempt(
        attempt_id=event.attempt_id,
        assistant_message_id=event.assistant_message_id,
        agent=event.agent,
        model=event.model,
        step=event.step,
        generation=session.generation,
        estimate=event.estimate,
        seq=session.seq,
    )


def _with_texts(
    session: Session,
    event: TextStarted | TextEnded,
    change: Callable[[tuple[str, ...]], tuple[str, ...]],
) -> Session:
    """Which texts are open: an ended one may be empty, so their words do not tell."""
    attempt = session.attempt
    if attempt is None or attempt.assistant_message_id != event.assistant_message_id:
        return session
    return replace(session, attempt=replace(attempt, open_texts=change(attempt.open_texts)))


def _asked(session: Session, event: AttemptDispatched) -> LastRequest | None:
    if event.request_hash is None or session.epoch is None:
        return None
    return LastRequest(
        event.request_hash,
        event.agent,
        event.model,
        session.epoch.seq,
        pruned=session.pruned is not None,
    )


def _learned(session: Session, event: StepEnded) -> Session:
    """What the provider counted corrects later estimates, and tells what its cache may hold."""
    reported, attempt = estimate.prompt(event.tokens), session.attempt
    asked = session.asked and replace(session.asked, tokens=reported)
    if attempt is None or attempt.estimate is None:
        return replace(session, asked=asked)
    key = estimate.key(attempt.model)
    ratio = estimate.learned(session.ratios.get(key), plain=attempt.estimate, reported=reported)
    ratios = session.ratios if ratio is None else {**session.ratios, key: ratio}
    return replace(session, asked=asked, ratios=ratios)


def _continues(session: Session, event: StepEnded) -> bool:
    """A turn that made local calls owes the model their results; a paused one is asked again."""
    if event.finish == PAUSE:
        return True
    assistant = session.find(event.assistant_message_id)
    if not isinstance(assistant, AssistantMessage):
        return False
    return any(
        isinstance(block, ToolBlock)
        and block.state.status in {"completed", "error"}
        and not (block.provider and block.provider.executed)
        for block in assistant.content
    )


def _totalled(session: Session, event: StepEnded, at: int) -> Session:
    if session.profile is None:
        return session
    profile = replace(
        session.profile,
        cost=session.profile.cost + event.cost,
        tokens=session.profile.tokens.plus(event.tokens),
        updated=at,
    )
    return replace(session, profile=profile)
