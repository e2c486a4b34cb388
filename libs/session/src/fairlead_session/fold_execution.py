"""Folds execution: ownership, attempts, steps, and the context epoch they run in."""

from dataclasses import replace
from typing import Final, TypeAlias, assert_never

from fairlead_schema.events import (
    AttemptDispatched,
    AttemptFinished,
    CompactionEnded,
    CompactionRequested,
    ContextInitialised,
    ContextReplaced,
    ContextSnapshotAdvanced,
    ExecutionClaimed,
    ExecutionRecovered,
    ExecutionReleased,
    InterruptRequested,
    ResumeRequested,
    StepEnded,
    StepFailed,
    StepStarted,
)
from fairlead_schema.message import AssistantMessage, ToolBlock
from fairlead_session.state import Attempt, Epoch, Finished, Owner, Session

ExecutionEvent: TypeAlias = (
    ExecutionClaimed
    | ExecutionReleased
    | AttemptDispatched
    | AttemptFinished
    | InterruptRequested
    | ResumeRequested
    | ExecutionRecovered
    | StepStarted
    | StepEnded
    | StepFailed
)
ContextEvent: TypeAlias = (
    ContextInitialised
    | ContextReplaced
    | ContextSnapshotAdvanced
    | CompactionRequested
    | CompactionEnded
)

# Rest that is not of the session's own choosing: whoever sweeps should try it again.
STILL_STIRRING: Final = frozenset({"handover", "context-unavailable"})


def evolve(session: Session, event: ExecutionEvent, at: int) -> Session:
    """Apply one event of execution."""
    match event:
        case ExecutionClaimed(runner=runner, generation=generation):
            owner = Owner(runner, generation)
            return replace(session, owner=owner, generation=generation, rested=None)
        case ExecutionReleased(reason=reason):
            stirring = session.stirring and reason in STILL_STIRRING
            return replace(session, owner=None, interrupted=False, rested=reason, stirring=stirring)
        case AttemptDispatched():
            return replace(session, attempt=_attempt(session, event), owed=False, step=event.step)
        case AttemptFinished(finish=finish, cost=cost, tokens=tokens):
            if session.attempt is None:
                return session
            finished = replace(session.attempt, finished=Finished(finish, cost, tokens))
            return replace(session, attempt=finished)
        case InterruptRequested():
            return replace(session, interrupted=session.owner is not None)
        case ResumeRequested():
            return replace(session, owed=True, rested=None, stirring=True)
        case ExecutionRecovered(action=action):
            # A retried attempt is forgotten and its turn owed again; the budget counts it.
            if action == "retried":
                retried = replace(session, attempt=None, owed=True)
                return replace(retried, recoveries=session.recoveries + 1)
            return replace(session, recoveries=session.recoveries + 1)
        case StepStarted():
            attempt = session.attempt
            started = None if attempt is None else replace(attempt, started=True)
            return replace(session, attempt=started)
        case StepEnded():
            ended = replace(session, attempt=None, owed=_continues(session, event), recoveries=0)
            return _totalled(ended, event, at)
        case StepFailed():
            return replace(session, attempt=None, owed=False)
        case _:
            assert_never(event)


def evolve_context(session: Session, event: ContextEvent, seq: int) -> Session:
    """Apply one event of the context epoch."""
    match event:
        case ContextInitialised() | ContextReplaced():
            return replace(session, epoch=Epoch(seq, event.baseline, event.snapshot))
        case ContextSnapshotAdvanced(snapshot=snapshot):
            assert session.epoch is not None, "a snapshot advances inside an epoch"
            return replace(session, epoch=replace(session.epoch, snapshot=snapshot))
        case CompactionRequested():
            return replace(session, compaction_requested=True)
        case CompactionEnded():
            return replace(session, compaction_requested=False)
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
    )


def _continues(session: Session, event: StepEnded) -> bool:
    """A turn that made local calls owes the model their results."""
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
