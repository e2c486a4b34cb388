"""Events of the session itself: creation, switches, moves, archive."""

from typing import ClassVar

from typing_extensions import override

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.ids import AttemptId, MessageId, SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.session_values.metadata import MetadataValue
from fairlead_schema.session_values.stored_file import StoredFile, StoredProfile
from fairlead_schema.tools.pool_rules import POOL_LEVEL, PoolName


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
    pool: PoolName | None = None
    """The pool whose workers serve the location. Absent means the default pool."""

    @property
    @override
    def needed_level(self) -> int:
        return self.level if self.pool is None else POOL_LEVEL


class SessionArchived(Event):
    type: ClassVar[str] = "session.archived"
    visibility: ClassVar[Visibility] = "notice"


class SessionUnarchived(Event):
    """The archived session is listed again and takes prompts."""

    type: ClassVar[str] = "session.unarchived"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "notice"


class SessionDescribed(Event):
    """Somebody named the session, or changed its metadata. An absent field stays as it is."""

    type: ClassVar[str] = "session.described"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "notice"
    title: str | None = None
    metadata: dict[str, MetadataValue] | None = None
    """All metadata from here on."""


class TitleRequested(Event):
    """A runner is about to ask a small model for a title. After a crash its outcome may be unknown."""

    type: ClassVar[str] = "title.requested"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "private"
    attempt_id: AttemptId
    model: ModelRef


class TitleEnded(Event):
    """The end of an attempt at a title: the title, or why there is none, and what the request used."""

    type: ClassVar[str] = "title.ended"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "notice"
    attempt_id: AttemptId
    model: ModelRef
    title: str | None = None
    message: str | None = None
    cost: float
    tokens: Tokens


class SessionPurged(Event):
    """The session is erased. Only this event stays in its log, and no event follows.

    The event keeps the id in use, so that nobody creates another session with the same id. It also
    keeps what the session used, without its child sessions, because a purge gives nothing back.
    """

    type: ClassVar[str] = "session.purged"
    visibility: ClassVar[Visibility] = "notice"
    cost: float | None = None
    tokens: int | None = None


class SessionStored(Event):
    """All events of the session are in a file, and its log begins again behind this marker.

    The marker has the seq 0. Only a replay of the file may follow it, from seq 1 on, or a purge.
    """

    type: ClassVar[str] = "session.stored"
    level: ClassVar[int] = 3
    visibility: ClassVar[Visibility] = "private"
    file: StoredFile
    profile: StoredProfile


class BudgetSet(Event):
    """How much the session may use in total. An absent limit means no limit."""

    type: ClassVar[str] = "budget.set"
    visibility: ClassVar[Visibility] = "notice"
    cost: float | None = None
    tokens: int | None = None


class ChildFinished(Event):
    """A child session has answered or stopped. The event carries the child's total usage."""

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
    pool: PoolName | None = None
    """The pool whose workers serve the location from here on. Absent means the default pool."""

    @property
    @override
    def needed_level(self) -> int:
        return self.level if self.pool is None else POOL_LEVEL
