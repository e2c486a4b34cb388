"""A session as readers see it."""

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.ids import SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.session_values.metadata import MetadataValue
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_schema.session_values.stored_file import StoredState


class SessionTime(Model):
    """When a session was created, last changed and archived, in epoch milliseconds."""

    created: int
    updated: int
    archived: int | None = None


class ModelUsage(Model):
    """What a session has used of one model, compactions and titles included."""

    model: ModelRef
    requests: int
    cost: float
    tokens: Tokens


class ChildrenUsage(Model):
    """What the sub-agents of a session have used, with all sessions below them."""

    cost: float
    tokens: int


class ChangeSummary(Model):
    """The files and lines that the tools of a session have changed."""

    files: int
    additions: int
    deletions: int
    more: bool | None = None
    """True: there are more files than were counted."""


class SessionInfo(Model):
    """One session in a listing or on its own page. `cost` and `tokens` leave out its children."""

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
    pool: str | None = None
    """The pool whose workers serve the session. Absent means the default pool."""
    revert: RevertState | None = None
    metadata: dict[str, MetadataValue] | None = None
    models: tuple[ModelUsage, ...] | None = None
    children: ChildrenUsage | None = None
    summary: ChangeSummary | None = None
    stored: StoredState | None = None
    """The file that holds the session; absent for a session in the log."""
