"""Folds what readers see of a session: title, place, agent, model, reverts."""

from typing import TypeAlias, assert_never

from fairlead_schema.events import (
    AgentSwitched,
    BudgetSet,
    ChildFinished,
    ModelSwitched,
    RevertCleared,
    RevertCommitted,
    RevertStaged,
    SessionArchived,
    SessionCreated,
    SessionMoved,
)
from fairlead_schema.ids import MessageId
from fairlead_schema.message import SystemMessage
from fairlead_session.execution.budget import raises
from fairlead_session.frozen import replace
from fairlead_session.state import Budget, ChildUsage, Epoch, Profile, Session

ProfileEvent: TypeAlias = (
    SessionCreated
    | BudgetSet
    | ChildFinished
    | SessionArchived
    | SessionMoved
    | AgentSwitched
    | ModelSwitched
    | RevertStaged
    | RevertCleared
    | RevertCommitted
)


def evolve(session: Session, event: ProfileEvent, at: int) -> Session:
    """Apply one event of the session itself."""
    if isinstance(event, SessionCreated):
        return replace(session, profile=_created(event, at))
    if session.profile is None:
        return session  # It was purged: nothing more can happen to it.
    profile = replace(session.profile, updated=at)
    match event:
        case BudgetSet(cost=cost, tokens=tokens):
            # A raised limit is a reason to go on for a session that rests over the old one.
            limits = Budget(cost, tokens)
            raised = session.rested == "over-budget" and raises(session.budget, limits)
            stirring = session.stirring or raised
            return replace(session, profile=profile, budget=limits, stirring=stirring)
        case ChildFinished():
            return replace(session, profile=profile, below=_added(session.below, event))
        case SessionArchived():
            return replace(session, profile=replace(profile, archived=at))
        case SessionMoved(location=location, subdirectory=subpath):
            moved = replace(profile, location=location, subpath=subpath)
            return replace(session, profile=moved, epoch=None, touched=())
        case AgentSwitched(agent=agent):
            return replace(session, profile=replace(profile, agent=agent))
        case ModelSwitched(model=model):
            return replace(session, profile=replace(profile, model=model))
        case RevertStaged(revert=revert):
            return replace(session, profile=replace(profile, revert=revert))
        case RevertCleared():
            return replace(session, profile=replace(profile, revert=None))
        case RevertCommitted(message_id=boundary):
            reverted = replace(session, profile=replace(profile, revert=None))
            return _truncated(reverted, boundary)
        case _:
            assert_never(event)


def _added(below: ChildUsage, child: ChildFinished) -> ChildUsage:
    owing = tuple(one for one in below.owing if one != child.session_id)
    return ChildUsage(below.cost + child.cost, below.tokens + child.tokens, owing)


def _created(event: SessionCreated, at: int) -> Profile:
    return Profile(
        title=event.title,
        project_id=event.project_id,
        location=event.location,
        created=at,
        updated=at,
        subpath=event.subpath,
        agent=event.agent,
        model=event.model,
        parent_id=event.parent_id,
        timezone=event.timezone,
    )


def _truncated(session: Session, boundary: MessageId) -> Session:
    """Everything after the boundary message leaves; its ids stay taken."""
    seq = next((line.seq for line in session.transcript if line.message.id == boundary), None)
    if seq is None:
        return session
    return replace(
        session,
        asked=None,
        epoch=_still_told(session, seq),
        transcript=tuple(line for line in session.transcript if line.seq <= seq),
        inbox=tuple(item for item in session.inbox if item.admitted_seq <= seq),
    )


def _still_told(session: Session, seq: int) -> Epoch | None:
    """The epoch, unless an update that its snapshot counts on leaves with the transcript.

    Then the snapshot would claim what the model no longer reads: the next turn begins a new one.
    """
    epoch = session.epoch
    if epoch is None or not any(
        line.seq > max(seq, epoch.seq) and isinstance(line.message, SystemMessage)
        for line in session.transcript
    ):
        return epoch
    return None
