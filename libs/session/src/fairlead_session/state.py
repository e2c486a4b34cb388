"""The state of a session: frozen values that the log folds into. Replay rebuilds all of it.

A session consists of parts. Each part is one value here and one reducer in `fold/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from immutables import Map

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.context import BaselinePart, SnapshotEntry
from fairlead_schema.events.asks import Todo
from fairlead_schema.events.execution import RestReason
from fairlead_schema.events.session import RevertState
from fairlead_schema.ids import (
    AttemptId,
    CallId,
    MessageId,
    PermissionId,
    QuestionId,
    RunnerId,
    SessionId,
    WorkerId,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.message import AssistantMessage, Message
from fairlead_schema.permission import PermissionRequest, QuestionRequest
from fairlead_schema.prompt import Delivery, Prompt
from fairlead_schema.tools.content import ErrorInfo, RetryClass
from fairlead_session.persistent import PersistentList, PersistentMap


@dataclass(frozen=True)
class PendingInput:
    """Input that was admitted and that the model has not seen."""

    admitted_seq: int
    message_id: MessageId
    prompt: Prompt
    delivery: Delivery
    created: int


@dataclass(frozen=True)
class AdmissionRecord:
    """The part of an admission that recognises an exact retry. The prompt itself is not kept."""

    admitted_seq: int
    fingerprint: str
    delivery: Delivery
    created: int
    promoted_seq: int | None = None
    cancelled: bool = False


@dataclass(frozen=True)
class Inbox:
    """Pending input, and a record of every admission of the session's life."""

    pending: tuple[PendingInput, ...] = ()
    admissions: PersistentMap[MessageId, AdmissionRecord] = field(default_factory=Map)


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One message of the transcript, with the sequence of the event that created it."""

    seq: int
    message: Message


@dataclass(frozen=True)
class Transcript:
    """The messages of the session since its last compaction.

    `message_ids` holds the id of every message that no admission created, also of those that
    compaction removed: no prompt may use such an id.
    """

    lines: PersistentList[TranscriptLine] = field(default_factory=PersistentList)
    message_ids: PersistentMap[MessageId, None] = field(default_factory=Map)

    def find(self, message_id: MessageId) -> Message | None:
        """The message with this id. The search begins with the newest message."""
        for line in reversed(self.lines):
            if line.message.id == message_id:
                return line.message
        return None

    def open_assistant(self) -> AssistantMessage | None:
        """The newest assistant message, if no step has completed it."""
        for line in reversed(self.lines):
            if isinstance(line.message, AssistantMessage):
                return line.message if line.message.time.completed is None else None
        return None


@dataclass(frozen=True, slots=True)
class Owner:
    """The runner that drains the session now."""

    runner: RunnerId
    generation: int


@dataclass(frozen=True)
class Interrupt:
    """A request to stop that a runner has not honoured yet."""

    declined: str | None = None
    """The call that a person declined, if a decline caused the interrupt."""
    resumed: bool = False
    """Somebody asked for another turn meanwhile. The turn follows the stop."""


@dataclass(frozen=True, slots=True)
class RestState:
    """Why the session rests, and when a timer ends the rest."""

    reason: RestReason
    detail: str | None = None
    wake_at: int | None = None


@dataclass(frozen=True)
class OpenAttempt:
    """A provider request without an outcome in the log, as far as execution is concerned."""

    seq: int
    overflowed: bool = False


@dataclass(frozen=True, slots=True)
class CallKey:
    """The identity of a call: its assistant message and its id there."""

    assistant_message_id: MessageId
    call_id: CallId


@dataclass(frozen=True)
class Execution:
    """Who drains the session, what somebody asked for, and why it rests.

    `owed`: the model owes an answer. `work_requested`: somebody asked for work since the session
    last rested; without it a session at rest stays at rest. `failure`: how the last request
    failed, while nobody has asked for anything since the request left.
    """

    generation: int = 0
    owner: Owner | None = None
    owed: bool = False
    work_requested: bool = False
    work_requested_seq: int = 0
    compaction_requested: bool = False
    interrupt: Interrupt | None = None
    rest: RestState | None = None
    attempt: OpenAttempt | None = None
    open_calls: tuple[CallKey, ...] = ()
    call_asks: Mapping[PermissionId, CallKey] = field(default_factory=dict)
    """Pending permissions that calls wait for."""
    answered_message_id: MessageId | None = None
    """The assistant message whose local call was settled last: its step continues."""
    recoveries: int = 0
    held: bool = False
    failure: str | None = None

    @property
    def interrupted(self) -> bool:
        return self.interrupt is not None

    @property
    def declined(self) -> str | None:
        return None if self.interrupt is None else self.interrupt.declined

    @property
    def rested(self) -> RestReason | None:
        return None if self.rest is None else self.rest.reason

    @property
    def rest_detail(self) -> str | None:
        return None if self.rest is None else self.rest.detail

    @property
    def wake_at(self) -> int | None:
        return None if self.rest is None else self.rest.wake_at


@dataclass(frozen=True, slots=True)
class FinishedStream:
    """How a provider's stream ended whose local calls are not all settled."""

    finish: str
    cost: float
    tokens: Tokens
    error: ErrorInfo | None = None
    raised: bool = False


@dataclass(frozen=True, slots=True)
class Overflow:
    """The provider's message when the prompt did not fit."""

    message: str
    in_stream: bool = False


@dataclass(frozen=True)
class Attempt:
    """A dispatched provider request whose outcome is not in the log yet."""

    attempt_id: AttemptId
    assistant_message_id: MessageId
    agent: str
    model: ModelRef
    step: int
    generation: int
    started: bool = False
    open_texts: tuple[str, ...] = ()
    finished: FinishedStream | None = None
    overflow: Overflow | None = None
    estimate: int | None = None


@dataclass(frozen=True)
class CompactionProgress:
    """Compactions for the turn to come: how many began, and what they led to.

    A turn that is rebuilt after a compaction promotes no new input.
    """

    tries: int = 0
    overflowed: bool = False
    declined: bool = False
    rebuilding: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """An action that a person permitted one call."""

    action: str
    resources: tuple[str, ...]


@dataclass(frozen=True)
class UnsettledCall:
    """A local call without a settlement."""

    assistant_message_id: MessageId
    call_id: CallId
    tool: str
    input: Mapping[str, Any]
    agent: str
    retry: RetryClass
    revision: str | None
    called_seq: int
    worker: WorkerId | None = None
    grants: tuple[Grant, ...] = ()
    deferred_until: int | None = None
    """The call is in a queue: another service settles it before this time, or it expires."""


@dataclass(frozen=True)
class Turn:
    """The provider turn under way: its attempt, and what counts against its limits."""

    attempt: Attempt | None = None
    step: int = 0
    retries: int = 0
    repeats: int = 0
    """How often the last local call was made in a row."""
    last_call: str | None = None
    """The fingerprint of the last local call."""


@dataclass(frozen=True)
class LastRequest:
    """The last request to a provider: its fingerprint, and what its prefix depends on."""

    fingerprint: str
    agent: str
    model: ModelRef
    epoch: int
    pruned: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class PruneCutoff:
    """Requests show tool outputs up to this sequence and above this size as references."""

    through_seq: int
    over_bytes: int


@dataclass(frozen=True)
class RequestState:
    """What earlier requests say about the next one."""

    last: LastRequest | None = None
    prune_cutoff: PruneCutoff | None = None
    token_ratios: Mapping[str, float] = field(default_factory=dict)
    """Reported tokens divided by estimated tokens, by model."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits on everything the session uses. None does not limit."""

    cost: float | None = None
    tokens: int | None = None

    def exceeds(self, other: "Budget") -> bool:
        """Whether this budget allows something that the other one does not."""
        return _higher(other.cost, self.cost) or _higher(other.tokens, self.tokens)


@dataclass(frozen=True)
class ChildUsage:
    """What the sessions of this one's calls have used, with all sessions below them."""

    cost: float = 0.0
    tokens: int = 0
    uncounted: tuple[SessionId, ...] = ()
    """Child sessions that have not reported their usage yet."""


@dataclass(frozen=True)
class Usage:
    """What the session has used, and its limits."""

    cost: float = 0.0
    tokens: Tokens = field(default_factory=Tokens)
    budget: Budget = field(default_factory=Budget)
    children: ChildUsage = field(default_factory=ChildUsage)


@dataclass(frozen=True, slots=True)
class PendingPermission:
    """A permission that waits for a person, and the agent whose rules decide about it."""

    request: PermissionRequest
    agent: str
    asked: int


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """Questions that wait for a person."""

    request: QuestionRequest
    asked: int


@dataclass(frozen=True)
class Asks:
    """Permissions and questions that wait for people, and the newest answers."""

    permissions: Mapping[PermissionId, PendingPermission] = field(default_factory=dict)
    questions: Mapping[QuestionId, PendingQuestion] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    """The newest answers in short form, by request. A repeated answer is recognised by them."""


@dataclass(frozen=True)
class Epoch:
    """The baseline in force, and the values of all sources that the model was last told."""

    seq: int
    baseline: tuple[BaselinePart, ...]
    snapshot: Mapping[str, SnapshotEntry]


@dataclass(frozen=True)
class Profile:
    """The description of a session that readers see."""

    title: str
    project_id: str
    location: LocationRef
    created: int
    updated: int
    subpath: str | None = None
    agent: str | None = None
    model: ModelRef | None = None
    parent_id: SessionId | None = None
    timezone: str | None = None
    archived: int | None = None
    revert: RevertState | None = None


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
    calls: tuple[UnsettledCall, ...] = ()
    compaction: CompactionProgress = field(default_factory=CompactionProgress)
    requests: RequestState = field(default_factory=RequestState)
    usage: Usage = field(default_factory=Usage)
    asks: Asks = field(default_factory=Asks)
    todos: tuple[Todo, ...] = ()
    read_directories: tuple[str, ...] = ()
    """Directories in which the session read files, oldest first. Their instructions apply."""


def _higher(before: float | None, after: float | None) -> bool:
    return before is not None and (after is None or after > before)
