"""Events of the session itself: creation, switches, moves, archive, reverts."""

from typing import ClassVar

from fairlead_schema.catalog import ModelRef
from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.revert import RevertState


class SessionCreated(Event):
    type: ClassVar[str] = "session.created"
    visibility: ClassVar[Visibility] = "notice"
    title: str
    project_id: str
    location: LocationRef
    subpath: str | None = None
    agent: str | None = None
    model: ModelRef | None = None
    parent_id: SessionId | None = None
    timezone: str | None = None


class SessionArchived(Event):
    type: ClassVar[str] = "session.archived"
    visibility: ClassVar[Visibility] = "notice"


class SessionPurged(Event):
    """The session is gone: nothing follows, and everything before it is erased.

    It stays as the last word under its id, so that nobody takes the id for a new one.
    """

    type: ClassVar[str] = "session.purged"
    visibility: ClassVar[Visibility] = "notice"


class BudgetSet(Event):
    """How much the session may use in all; an absent limit is no limit."""

    type: ClassVar[str] = "budget.set"
    visibility: ClassVar[Visibility] = "notice"
    cost: float | None = None
    tokens: int | None = None


class ChildFinished(Event):
    """A session below, made by a call of this one, has answered or stopped: what that cost in all."""

    type: ClassVar[str] = "child.finished"
    visibility: ClassVar[Visibility] = "private"
    session_id: SessionId
    cost: float
    tokens: int


class AgentSwitched(Event):
    type: ClassVar[str] = "agent.switched"
    message_id: MessageId
    agent: str


class ModelSwitched(Event):
    type: ClassVar[str] = "model.switched"
    message_id: MessageId
    model: ModelRef


class SessionMoved(Event):
    type: ClassVar[str] = "moved"
    location: LocationRef
    subdirectory: str | None = None


class RevertStaged(Event):
    type: ClassVar[str] = "revert.staged"
    revert: RevertState


class RevertCleared(Event):
    type: ClassVar[str] = "revert.cleared"


class RevertCommitted(Event):
    type: ClassVar[str] = "revert.committed"
    message_id: MessageId
