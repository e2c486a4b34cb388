"""What a session becomes: the fold. Total, pure, and it never rejects."""

from typing import assert_never

from fairlead_schema.events import (
    AgentSwitched,
    AttemptDispatched,
    AttemptFinished,
    AttemptOverflowed,
    BudgetSet,
    ChildFinished,
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    CompactionUsed,
    ContextInitialised,
    ContextPruned,
    ContextReplaced,
    ContextSnapshotAdvanced,
    ContextUpdated,
    ExecutionClaimed,
    ExecutionRecovered,
    ExecutionReleased,
    InputCancelled,
    InputEdited,
    InterruptRequested,
    ModelSwitched,
    PermissionAsked,
    PermissionReplied,
    PromptAdmitted,
    PromptPromoted,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    ReasoningEnded,
    ReasoningStarted,
    ResumeRequested,
    RevertCleared,
    RevertCommitted,
    RevertStaged,
    SessionArchived,
    SessionCreated,
    SessionMoved,
    SessionPurged,
    ShellEnded,
    ShellStarted,
    StepEnded,
    StepFailed,
    StepStarted,
    SyntheticAdded,
    TextEnded,
    TextStarted,
    TodoUpdated,
    ToolCalled,
    ToolDeferred,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolProgressed,
    ToolStarted,
    ToolSucceeded,
    TurnRetried,
)
from fairlead_schema.message import Message, SystemMessage
from fairlead_schema.record import Recorded
from fairlead_session.fold import asks, calls, compaction, execution, inbox, profile, turn
from fairlead_session.fold.transcript import revise
from fairlead_session.frozen import replace
from fairlead_session.state import Session, TranscriptLine


def evolve(session: Session, recorded: Recorded) -> Session:
    """Apply one committed event. Never rejects: validity was decided before the append."""
    seq, at, event = recorded.seq, recorded.time, recorded.event
    if isinstance(event, SessionPurged):
        # Nothing of it is left, and what came before may be erased: any sequence may precede.
        return Session(id=session.id, seq=seq)
    assert seq == session.seq + 1, f"{session.id}: {seq} after {session.seq}"
    told = _told(replace(session, seq=seq, changed_at=at), recorded)
    match event:
        case (
            SessionCreated() | BudgetSet() | ChildFinished() | SessionArchived() | SessionMoved()
            | AgentSwitched() | ModelSwitched() | RevertStaged() | RevertCleared() | RevertCommitted()
        ):  # fmt: skip
            return profile.evolve(told, event, at)
        case PromptAdmitted() | PromptPromoted() | InputCancelled() | InputEdited():
            return inbox.evolve(told, event, seq, at)
        case (
            ExecutionClaimed() | ExecutionReleased() | InterruptRequested() | ResumeRequested()
            | ExecutionRecovered()
        ):  # fmt: skip
            return execution.evolve(told, event)
        case (
            AttemptDispatched() | AttemptFinished() | StepStarted() | StepEnded() | StepFailed()
            | TextStarted() | TextEnded() | TurnRetried()
        ):  # fmt: skip
            return turn.evolve(told, event, at)
        case ContextInitialised() | ContextReplaced() | ContextSnapshotAdvanced():
            return execution.evolve_context(told, event, seq)
        case (
            CompactionRequested() | CompactionStarted() | CompactionEnded() | CompactionFailed()
            | CompactionUsed() | AttemptOverflowed() | ContextPruned()
        ):  # fmt: skip
            return compaction.evolve(told, event, at)
        case ToolCalled() | ToolStarted() | ToolDeferred() | ToolSucceeded() | ToolFailed():
            return calls.evolve(told, event, seq)
        case (
            PermissionAsked() | PermissionReplied() | QuestionAsked() | QuestionReplied()
            | QuestionRejected() | TodoUpdated()
        ):  # fmt: skip
            return asks.evolve(told, event, at)
        case (
            ReasoningStarted() | ReasoningEnded() | ToolInputStarted() | ToolInputEnded()
            | ToolProgressed() | ContextUpdated() | SyntheticAdded() | ShellStarted() | ShellEnded()
        ):  # fmt: skip
            return told
        case _:
            assert_never(event)


def _told(session: Session, recorded: Recorded) -> Session:
    """The session with the event told in its transcript."""
    changed = revise(session.id, recorded, session)
    for message in changed:
        session = _with_message(session, message, recorded.seq)
    if isinstance(recorded.event, CompactionEnded):
        return replace(session, transcript=_after_compaction(session))
    return session


def _with_message(session: Session, message: Message, seq: int) -> Session:
    lines, others = session.transcript, session.other_messages
    if message.id in others:
        for index in range(len(lines) - 1, -1, -1):
            if lines[index].message.id == message.id:
                revised = TranscriptLine(lines[index].seq, message)
                return replace(session, transcript=(*lines[:index], revised, *lines[index + 1 :]))
    if message.id not in session.admissions:
        others = others | {message.id}
    return replace(
        session, transcript=(*lines, TranscriptLine(seq, message)), other_messages=others
    )


def _after_compaction(session: Session) -> tuple[TranscriptLine, ...]:
    """Active history starts at the checkpoint; updates of the epoch in force stay until it ends."""
    since = session.epoch.seq if session.epoch else 0
    kept = (
        line
        for line in session.transcript[:-1]
        if isinstance(line.message, SystemMessage) and line.seq > since
    )
    return (*kept, session.transcript[-1])
