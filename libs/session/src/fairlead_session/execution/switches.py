"""Switches: another agent, another model, another place, put away, gone."""

from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import (
    AgentSwitched,
    InterruptRequested,
    ModelSwitched,
    SessionArchived,
    SessionMoved,
)
from fairlead_schema.ids import MessageId
from fairlead_schema.location import LocationRef
from fairlead_session.execution.commands import stop
from fairlead_session.state.session import Profile, Session


def switch_agent(message_id: MessageId, agent: str) -> AgentSwitched:
    """Later turns speak as another agent. Always said, even if it is the same one."""
    return AgentSwitched(message_id=message_id, agent=agent)


def switch_model(session: Session, message_id: MessageId, model: ModelRef) -> ModelSwitched | None:
    """Later turns use another model; the selected one again is nothing new."""
    selected = _profile(session).model
    if selected is not None and selected.same_model(model):
        return None
    return ModelSwitched(message_id=message_id, model=model)


def move(
    session: Session, location: LocationRef
) -> tuple[()] | tuple[SessionMoved] | tuple[InterruptRequested, SessionMoved]:
    """Work elsewhere: stops what runs at the old place. The same directory is no move."""
    if _profile(session).location.directory == location.directory:
        return ()
    moved, stopped = SessionMoved(location=location), stop(session)
    return (moved,) if stopped is None else (stopped, moved)


def archive(session: Session) -> SessionArchived | None:
    """Put the session away, once."""
    return SessionArchived() if _profile(session).archived is None else None


def _profile(session: Session) -> Profile:
    assert session.profile is not None, "only a session that exists is switched"
    return session.profile
