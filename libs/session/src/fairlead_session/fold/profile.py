"""Folds the description of a session: title, location, agent, model, revert."""

from typing import TypeAlias, assert_never

from fairlead_schema.events import (
    AgentSwitched,
    BudgetSet,
    ChildFinished,
    CompactionUsed,
    ModelSwitched,
    RevertCleared,
    RevertCommitted,
    RevertStaged,
    SessionArchived,
    SessionCreated,
    SessionMoved,
    StepEnded,
)
from fairlead_schema.record import Recorded
from fairlead_session.frozen import replace
from fairlead_session.state.session import Profile, Session

_ChangeEvent: TypeAlias = (
    BudgetSet
    | ChildFinished
    | CompactionUsed
    | StepEnded
    | SessionArchived
    | SessionMoved
    | AgentSwitched
    | ModelSwitched
    | RevertStaged
    | RevertCleared
    | RevertCommitted
)
ProfileEvent: TypeAlias = SessionCreated | _ChangeEvent


def evolve(session: Session, event: ProfileEvent, recorded: Recorded) -> Profile | None:
    """Apply one event of the description. A purged session has none."""
    if isinstance(event, SessionCreated):
        return _create(event, recorded.time)
    if session.profile is None:
        return None
    return _change(replace(session.profile, updated=recorded.time), event, recorded.time)


def _change(profile: Profile, event: _ChangeEvent, at: int) -> Profile:
    match event:
        case BudgetSet() | ChildFinished() | CompactionUsed() | StepEnded():
            return profile
        case SessionArchived():
            return replace(profile, archived=at)
        case SessionMoved(location=location, subdirectory=subpath):
            return replace(profile, location=location, subpath=subpath)
        case AgentSwitched(agent=agent):
            return replace(profile, agent=agent)
        case ModelSwitched(model=model):
            return replace(profile, model=model)
        case RevertStaged(revert=revert):
            return replace(profile, revert=revert)
        case RevertCleared() | RevertCommitted():
            return replace(profile, revert=None)
        case _:
            assert_never(event)


def _create(event: SessionCreated, at: int) -> Profile:
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
