"""Folds the description of a session: title, location, agent, model, revert."""

from typing import Any, Final, TypeAlias

from fairlead_schema.events import (
    AgentSwitched,
    BudgetSet,
    ChildFinished,
    CompactionUsed,
    ModelSwitched,
    PromptPromoted,
    RevertCleared,
    RevertCommitted,
    RevertStaged,
    SessionArchived,
    SessionCreated,
    SessionDescribed,
    SessionEvent,
    SessionMoved,
    SessionUnarchived,
    StepEnded,
    TitleEnded,
    TitleRequested,
)
from fairlead_schema.identity.principal import counted_principal
from fairlead_schema.record import Recorded
from fairlead_session.fold import Reducers
from fairlead_session.frozen import replace
from fairlead_session.input.prompt_title import title_after
from fairlead_session.state.session import Profile, Session

Change: TypeAlias = Profile | None


def _create(_session: Session, event: SessionCreated, recorded: Recorded) -> Profile:
    at = recorded.time
    return Profile(
        title=event.title,
        project_id=event.project_id,
        location=event.location,
        created=at,
        updated=at,
        subpath=event.subpath,
        pool=event.pool,
        agent=event.agent,
        model=event.model,
        parent_id=event.parent_id,
        timezone=event.timezone,
        created_by=counted_principal(recorded.by),
    )


def _name(session: Session, event: PromptPromoted, _recorded: Recorded) -> Change:
    profile = session.profile
    title = None if profile is None else title_after(profile.title, event.prompt)
    if profile is None or title is None or title == profile.title:
        return profile
    return replace(profile, title=title, titling=replace(profile.titling, words=title))


def _request_title(session: Session, event: TitleRequested, recorded: Recorded) -> Change:
    profile = session.profile
    if profile is None:
        return None
    titling = replace(
        profile.titling,
        attempts=profile.titling.attempts + 1,
        attempt=event.attempt_id,
        requested_at=recorded.time,
    )
    return replace(profile, titling=titling)


def _end_title(session: Session, event: TitleEnded, _recorded: Recorded) -> Change:
    profile = session.profile
    if profile is None:
        return None
    titling = replace(profile.titling, attempt=None)
    return replace(profile, title=event.title or profile.title, titling=titling)


def _describe(session: Session, event: SessionDescribed, recorded: Recorded) -> Change:
    """A title that somebody chose ends the titles by a model."""
    changes: dict[str, object] = {}
    if event.title is not None and session.profile is not None:
        titling = replace(session.profile.titling, words=None)
        changes |= {"title": event.title, "titling": titling}
    if event.metadata is not None:
        changes["metadata"] = event.metadata
    return _change(session, recorded, **changes)


def _touch(session: Session, _event: SessionEvent, recorded: Recorded) -> Change:
    return _change(session, recorded)


def _archive(session: Session, _event: SessionArchived, recorded: Recorded) -> Change:
    return _change(session, recorded, archived=recorded.time)


def _unarchive(session: Session, _event: SessionUnarchived, recorded: Recorded) -> Change:
    return _change(session, recorded, archived=None)


def _move(session: Session, event: SessionMoved, recorded: Recorded) -> Change:
    place = {"location": event.location, "subpath": event.subdirectory, "pool": event.pool}
    return _change(session, recorded, **place)


def _switch_agent(session: Session, event: AgentSwitched, recorded: Recorded) -> Change:
    return _change(session, recorded, agent=event.agent)


def _switch_model(session: Session, event: ModelSwitched, recorded: Recorded) -> Change:
    return _change(session, recorded, model=event.model)


def _stage_revert(session: Session, event: RevertStaged, recorded: Recorded) -> Change:
    return _change(session, recorded, revert=event.revert)


def _end_revert(
    session: Session, _event: RevertCleared | RevertCommitted, recorded: Recorded
) -> Change:
    return _change(session, recorded, revert=None)


def _change(
    session: Session,
    recorded: Recorded,
    **changes: Any,  # noqa: ANN401 - the fields of a profile
) -> Change:
    """A purged session has no description to change."""
    if session.profile is None:
        return None
    return replace(session.profile, updated=recorded.time, **changes)


REDUCERS: Final[Reducers[Change]] = {
    SessionCreated: _create,
    PromptPromoted: _name,
    TitleRequested: _request_title,
    TitleEnded: _end_title,
    StepEnded: _touch,
    CompactionUsed: _touch,
    BudgetSet: _touch,
    ChildFinished: _touch,
    SessionArchived: _archive,
    SessionUnarchived: _unarchive,
    SessionDescribed: _describe,
    SessionMoved: _move,
    AgentSwitched: _switch_agent,
    ModelSwitched: _switch_model,
    RevertStaged: _stage_revert,
    RevertCleared: _end_revert,
    RevertCommitted: _end_revert,
}
