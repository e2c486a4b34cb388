"""Folds execution: who owns the session, what was asked of it, and the epoch it runs in."""

from typing import Final, TypeAlias, assert_never

from fairlead_schema.events import (
    ContextInitialised,
    ContextReplaced,
    ContextSnapshotAdvanced,
    ExecutionClaimed,
    ExecutionRecovered,
    ExecutionReleased,
    InterruptRequested,
    ResumeRequested,
)
from fairlead_schema.events.execution import RestReason
from fairlead_schema.message import SystemMessage
from fairlead_session.fold.compaction import SAME_TURN, settled
from fairlead_session.frozen import replace
from fairlead_session.state import Epoch, Owner, Session
from fairlead_session.turn.history import compacted_seq

ExecutionEvent: TypeAlias = (
    ExecutionClaimed | ExecutionReleased | InterruptRequested | ResumeRequested | ExecutionRecovered
)
ContextEvent: TypeAlias = ContextInitialised | ContextReplaced | ContextSnapshotAdvanced

# Rest that is not of the session's own choosing, or that something will end by itself.
STILL_STIRRING: Final = frozenset(
    {
        "handover",
        "context-unavailable",
        "interrupted",
        "declined",
        "parked",
        "retry-later",
        "budget-unknown",
    }
)
# Rest after an interrupt was honoured.
STOPPED: Final = frozenset({"interrupted", "declined"})


def evolve(session: Session, event: ExecutionEvent) -> Session:
    """Apply one event of execution."""
    match event:
        case ExecutionClaimed(runner=runner, generation=generation):
            owner = Owner(runner, generation)
            # Whoever claims it beyond its old limit was called because the limit may have changed.
            stirring = session.stirring or session.rested == "over-budget"
            claimed = replace(session, owner=owner, generation=generation, rested=None)
            return replace(claimed, stirring=stirring)
        case ExecutionReleased():
            return _released(session, event)
        case InterruptRequested():
            # Earlier wakes are dropped: only what is asked for after this stirs the session again.
            dropped = replace(session, stirring=False, resumed=False, compaction_requested=False)
            if session.owner or session.attempt or session.calls:
                return replace(dropped, interrupted=True, declined=event.declined)
            # Nothing is open that somebody would have to settle: it rests from here on.
            reason: RestReason = "declined" if event.declined else "interrupted"
            rest = replace(dropped, owed=False, rested=reason, rest_detail=event.declined)
            return replace(rest, wake_at=None)
        case ResumeRequested():
            stirred = replace(session, rested=None, stirring=True, failure=None)
            stirred = replace(stirred, stirred_seq=session.seq)
            if event.forced is False:
                return stirred
            resumed = replace(settled(stirred), owed=True, held=False)
            again = replace(resumed, recoveries=0, retries=0, repeats=0, step=0)
            return replace(again, resumed=session.interrupted)
        case ExecutionRecovered(action=action):
            # The attempt is forgotten and its turn owed again, now or when somebody resumes.
            step = max(0, session.step - 1)
            recovered = replace(session, attempt=None, owed=True, step=step, held=action == "held")
            # A runner that leaves in good order is no crash, however often it happens.
            crashes = session.recoveries + (action != "handover")
            return replace(recovered, recoveries=crashes)
        case _:
            assert_never(event)


def _released(session: Session, event: ExecutionReleased) -> Session:
    session = session if event.reason in SAME_TURN else settled(session)
    goes_on = event.reason in STILL_STIRRING
    released = replace(
        session,
        owner=None,
        rested=event.reason,
        rest_detail=event.detail,
        wake_at=event.wake_at,
        stirring=session.stirring and goes_on,
        compaction_requested=session.compaction_requested and goes_on,
        failure=None,
    )
    if event.reason in STOPPED:
        stopped = replace(released, interrupted=False, declined=None, attempt=None)
        return replace(stopped, owed=session.resumed, resumed=False)
    return released


def _since(session: Session, seq: int) -> int:
    """Where a replaced baseline begins: at the compaction it follows, unless more was told since."""
    compacted = compacted_seq(session)
    if compacted is None or (session.epoch and session.epoch.seq >= compacted):
        return seq
    told = any(
        isinstance(line.message, SystemMessage) and line.seq > compacted
        for line in session.transcript
    )
    return seq if told else compacted


def evolve_context(session: Session, event: ContextEvent, seq: int) -> Session:
    """Apply one event of the context epoch."""
    match event:
        case ContextInitialised():
            return replace(session, epoch=Epoch(seq, event.baseline, event.snapshot))
        case ContextReplaced():
            since = _since(session, seq)
            return replace(session, epoch=Epoch(since, event.baseline, event.snapshot))
        case ContextSnapshotAdvanced(snapshot=snapshot):
            assert session.epoch is not None, "a snapshot advances inside an epoch"
            return replace(session, epoch=replace(session.epoch, snapshot=snapshot))
        case _:
            assert_never(event)
