"""A session: its description, its context epoch, and all its parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead_schema.catalog import ModelRef
from fairlead_schema.context import BaselinePart, SnapshotEntry
from fairlead_schema.events import SessionStored
from fairlead_schema.events.asks import Todo
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import AttemptId, SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.session_values.metadata import MetadataValue
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_session.state.activity import Activity
from fairlead_session.state.answers import KeptAnswer
from fairlead_session.state.asks import Asks
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.execution import Execution
from fairlead_session.state.file_changes import FileChanges
from fairlead_session.state.inbox import Inbox
from fairlead_session.state.model_requests import RequestState
from fairlead_session.state.relocation import Relocation
from fairlead_session.state.revert import Revert
from fairlead_session.state.transcript import Transcript
from fairlead_session.state.turn import CompactionProgress, Turn
from fairlead_session.state.usage import Usage


@dataclass(frozen=True)
class Epoch:
    """The baseline in force, and the values of all sources that the model was last told."""

    seq: int
    baseline: tuple[BaselinePart, ...]
    snapshot: Mapping[str, SnapshotEntry]


@dataclass(frozen=True)
class Titling:
    """How far a title by a small model is. A title other than `words` is somebody's own."""

    words: str | None = None
    """The first words of the first prompt, if they became the title."""
    attempts: int = 0
    attempt: AttemptId | None = None
    """The attempt that is open."""
    requested_at: int = 0


@dataclass(frozen=True)
class Profile:
    """The description of a session that readers see."""

    title: str
    project_id: str
    location: LocationRef
    created: int
    updated: int
    subpath: str | None = None
    pool: str | None = None
    """The pool whose workers serve the session; None for the default pool."""
    agent: str | None = None
    model: ModelRef | None = None
    parent_id: SessionId | None = None
    timezone: str | None = None
    archived: int | None = None
    revert: RevertState | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    titling: Titling = field(default_factory=Titling)
    created_by: PrincipalName | None = None
    """The principal for which the session and all its work count; None in a log that names nobody."""

    def serving_pool(self, default: str) -> str:
        """The name of the pool whose workers serve the session, given that of the default pool."""
        return self.pool or default


@dataclass(frozen=True)
class Session:
    """One durable conversation, folded up to `seq`. A session without a profile does not exist."""

    id: SessionId
    seq: int = 0
    changed_at: int | None = None
    profile: Profile | None = None
    inbox: Inbox = field(default_factory=Inbox)
    transcript: Transcript = field(default_factory=Transcript)
    epoch: Epoch | None = None
    execution: Execution = field(default_factory=Execution)
    turn: Turn = field(default_factory=Turn)
    activity: Activity = field(default_factory=Activity)
    calls: tuple[UnsettledCall, ...] = ()
    compaction: CompactionProgress = field(default_factory=CompactionProgress)
    requests: RequestState = field(default_factory=RequestState)
    usage: Usage = field(default_factory=Usage)
    file_changes: FileChanges = field(default_factory=FileChanges)
    asks: Asks = field(default_factory=Asks)
    todos: tuple[Todo, ...] = ()
    read_directories: tuple[str, ...] = ()
    """Directories in which the session read files, oldest first. Their instructions apply."""
    revert: Revert = field(default_factory=Revert)
    relocation: Relocation = field(default_factory=Relocation)
    answers: Mapping[str, KeptAnswer] = field(default_factory=dict)
    """The answers of the last commands with an idempotency key, oldest first."""
    stored: SessionStored | None = None
    """The marker of a stored session, until a restore has brought its last event back."""

    @property
    def is_incomplete(self) -> bool:
        """Whether an import has not brought all events yet. Nobody may change the session then."""
        through = self.execution.imported_through
        return through is not None and self.seq < through
