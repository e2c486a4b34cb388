"""The rows of the read models, and their JSON form for Postgres. No I/O."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic_core import to_json

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CallId, MessageId, SessionId, TenantId
from fairlead_schema.message import AssistantMessage, Message
from fairlead_schema.permission import PermissionRequest, QuestionRequest
from fairlead_schema.prompt import Delivery, Prompt
from fairlead_schema.session_info import ChildrenUsage, ModelUsage
from fairlead_schema.session_values.metadata import MetadataValue
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_schema.session_values.stored_file import StoredState
from fairlead_session.state.execution import CallKey, Execution
from fairlead_session.state.file_changes import FileChanges


@dataclass(slots=True)
class SessionRow:
    """`projection.session`. It changes in place, and is thrown away if its transaction fails."""

    tenant: TenantId
    session_id: SessionId
    seq: int
    position: int
    project_id: str
    title: str
    directory: str
    created_at: int
    updated_at: int
    parent_id: SessionId | None = None
    workspace_id: str | None = None
    subpath: str | None = None
    pool: str | None = None
    agent: str | None = None
    model: ModelRef | None = None
    cost: float = 0
    tokens: Tokens = field(default_factory=Tokens)
    models: tuple[ModelUsage, ...] = ()
    children: ChildrenUsage = field(default_factory=lambda: ChildrenUsage(cost=0, tokens=0))
    file_changes: FileChanges = field(default_factory=FileChanges)
    archived_at: int | None = None
    revert: RevertState | None = None
    metadata: dict[str, MetadataValue] = field(default_factory=dict)
    owner: str | None = None
    pending: int = 0
    execution: Execution = field(default_factory=Execution)
    """The value of the core. `owed` to `rested` follow from it, as columns for the sweep."""
    owed: bool = False
    work_requested: bool = False
    wake_at: int | None = None
    interrupted: bool = False
    rested: str | None = None
    budget_cost: float | None = None
    budget_tokens: int | None = None
    broken: str | None = None
    broken_by: str | None = None
    """The release that found the session broken."""
    asks: int = 0
    log_bytes: int = 0
    created_by: PrincipalName | None = None
    """The principal of the first commit, for which the session counts."""
    started_calls: tuple[CallKey, ...] = ()
    """The open calls that a worker has started."""
    waiting: bool = False
    """Whether every open call waits for a person, so that nothing else can move the session."""
    stored: StoredState | None = None
    """The file that holds the session, until a restore has brought its last event back."""


@dataclass(slots=True)
class InputRow:
    """`projection.session_input`, for an input admitted in this batch."""

    tenant: TenantId
    session_id: SessionId
    message_id: MessageId
    admitted_seq: int
    delivery: Delivery
    prompt: Prompt
    created_at: int
    promoted_seq: int | None = None
    cancelled: bool = False


@dataclass(slots=True)
class InputChange:
    """A change to an input that an earlier batch admitted. None leaves a column as it is."""

    tenant: TenantId
    session_id: SessionId
    message_id: MessageId
    promoted_seq: int | None = None
    cancelled: bool | None = None
    delivery: Delivery | None = None
    prompt: Prompt | None = None


@dataclass(slots=True)
class AskRow:
    """`projection.session_ask`: one ask that waits for a person."""

    tenant: TenantId
    session_id: SessionId
    request_id: str
    kind: Literal["permission", "question"]
    seq: int
    message_id: MessageId | None
    call_id: CallId | None
    request: PermissionRequest | QuestionRequest
    asked_at: int


class AskKey(NamedTuple):
    """The key of an ask."""

    tenant: TenantId
    session_id: SessionId
    request_id: str


class MessageRow(NamedTuple):
    """A message and the sequence of the event that created it."""

    seq: int
    message: Message


class EventRow(NamedTuple):
    """`projection.session_event`: one event as the log stores it."""

    tenant: TenantId
    session_id: SessionId
    seq: int
    event_id: str
    type: str
    version: int
    time: int
    data: bytes


class Truncation(NamedTuple):
    """A committed revert. It removes everything after the boundary and before the revert."""

    tenant: TenantId
    session_id: SessionId
    boundary_seq: int
    revert_seq: int
    withdrawn: list[MessageId] | None = None
    """The pending inputs that leave. None: all that came after the boundary."""


class SessionIds(NamedTuple):
    """The messages and inputs of a session that this process has projected from its first event."""

    messages: set[MessageId]
    inputs: set[MessageId]


@dataclass(slots=True)
class ProjectedSession:
    """The rows of a session that its next commit may change."""

    row: SessionRow
    pending: dict[MessageId, int] = field(default_factory=dict)
    messages: dict[MessageId, MessageRow] = field(default_factory=dict)
    newest_assistant: MessageId | None = None
    message_bytes: int = 0
    """The size of the newest assistant message, as far as it was loaded or written."""
    asks: dict[str, tuple[MessageId, CallId] | None] = field(default_factory=dict)
    """The pending asks, each with the call that it comes from."""
    ids: "SessionIds | None" = None
    """What the tables have of the session; None if somebody else wrote its first rows."""

    def may_have(self, message_id: MessageId) -> bool:
        """Whether the tables may have this message although it is not here."""
        if message_id in self.messages:
            return False
        return self.ids is None or message_id in self.ids.messages

    def find(self, message_id: MessageId) -> Message | None:
        row = self.messages.get(message_id)
        return None if row is None else row.message

    def open_assistant(self) -> AssistantMessage | None:
        if self.newest_assistant is None:
            return None
        newest = self.find(self.newest_assistant)
        if isinstance(newest, AssistantMessage) and newest.time.completed is None:
            return newest
        return None

    def forget_closed(self) -> None:
        """Keep only the newest assistant message. The store loads others when an event names them."""
        newest = self.messages.get(self.newest_assistant or "")
        self.messages = {} if newest is None else {newest.message.id: newest}


def json_row(row: object) -> bytes:
    """A row in JSON, for `jsonb_to_recordset`."""
    return to_json(row, by_alias=True, exclude_none=True, inf_nan_mode="null")
