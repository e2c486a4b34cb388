"""A session as readers see it."""

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events.session import RevertState
from fairlead_schema.ids import SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model


class SessionTime(Model):
    """When a session was created, last changed and archived, in epoch milliseconds."""

    created: int
    updated: int
    archived: int | None = None


class SessionInfo(Model):
    """One session in a listing or on its own page."""

    id: SessionId
    parent_id: SessionId | None = None
    project_id: str
    agent: str | None = None
    model: ModelRef | None = None
    cost: float = 0
    tokens: Tokens = Tokens()
    time: SessionTime
    title: str
    location: LocationRef
    subpath: str | None = None
    revert: RevertState | None = None
