"""What a session is: the frozen state that the log folds into. Everything here is rebuilt by replay."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(frozen=True, slots=True)
class PendingInput:
    """Admitted, not yet visible to the model."""

    admitted_seq: int
    message_id: MessageId
    prompt: Prompt
    delivery: Delivery
    created: int


@dataclass(frozen=True, slots=True)
class AdmissionRecord:
    """What stays of an admission for ever, so that a retry is recognised: never the whole prompt."""

    admitted_seq: int
    fingerprint: str
    delivery: Delivery
    created: int
    promoted_seq: int | None = None
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One message of the transcript, with the sequence of the event that created it."""

    seq: int
    message: Message


@dataclass(frozen=True, slots=True)
class Owner:
    """Who drains the session now."""

    runner: RunnerId
    generation: int


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
    """What a provider said when the prompt did not fit."""

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
    seq: int = 0
    started: bool = False
    open_texts: tuple[str, ...] = ()
    finished: FinishedStream | None = None
    overflow: Overflow | None = None
    estimate: int | None = None


@dataclass(frozen=True, slots=True)
class LastRequest:
    """The last request that left: its fingerprint, and what its prefix was made for."""

    fingerprint: str
    agent: str
    model: ModelRef
    epoch: int
    pruned: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    """What was tried to make the turn to come fit. A turn that is rebuilt promotes nothing."""

    tries: int = 0
    overflowed: bool = False
    declined: bool = False
    rebuilding: bool = False


@dataclass(frozen=True, slots=True)
class PruneCutoff:
    """Tool outputs up to a sequence and above a size are sent as references."""

    through_seq: int
    over_bytes: int


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person permitted one call to do."""

    action: str
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnsettledCall:
    """A local call that is not settled."""

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
    """Left in a queue: somebody outside settles it, or its time runs out."""


@dataclass(frozen=True, slots=True)
class PendingPermission:
    """A permission that waits for a person, and whose rules decide about it."""

    request: PermissionRequest
    agent: str
    asked: int


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """Questions that wait for a person."""

    request: QuestionRequest
    asked: int


@dataclass(frozen=True, slots=True)
class Budget:
    """How much the session may use in all."""

    cost: float | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ChildUsage:
    """What the sessions that this one's calls made have used, with all below them."""

    cost: float = 0.0
    tokens: int = 0
    owing: tuple[SessionId, ...] = ()
    """Those that calls may have made and that have not told yet what they used."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """The baseline in force, and the comparison state of every source."""

    seq: int
    baseline: tuple[BaselinePart, ...]
    snapshot: Mapping[str, SnapshotEntry]


@dataclass(frozen=True)
class Profile:
    """What readers see of a session besides its messages."""

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
    cost: float = 0.0
    tokens: Tokens = field(default_factory=Tokens)


@dataclass(frozen=True)
class Session:
    """One durable conversation, folded up to `seq`. A session without a profile does not exist.

    `owed` means that the model owes an answer; `stirring` that somebody asked for work to be done
    since the session last rested, so that a session at rest for a reason is left in peace. `resumed`
    means that a turn was asked for while an interrupt was being honoured: it comes after that.
    `failure` says how the last request itself failed, while nobody asked for anything since it left.
    """

    id: SessionId
    seq: int = 0
    profile: Profile | None = None
    inbox: tuple[PendingInput, ...] = ()
    admissions: Mapping[MessageId, AdmissionRecord] = field(default_factory=dict)
    other_messages: frozenset[MessageId] = frozenset()
    transcript: tuple[TranscriptLine, ...] = ()
    generation: int = 0
    owner: Owner | None = None
    attempt: Attempt | None = None
    asked: LastRequest | None = None
    calls: tuple[UnsettledCall, ...] = ()
    budget: Budget = field(default_factory=Budget)
    below: ChildUsage = field(default_factory=ChildUsage)
    owed: bool = False
    stirring: bool = False
    stirred_seq: int = 0
    failure: str | None = None
    step: int = 0
    recoveries: int = 0
    retries: int = 0
    held: bool = False
    repeats: int = 0
    last_call: str | None = None
    interrupted: bool = False
    resumed: bool = False
    rested: RestReason | None = None
    rest_detail: str | None = None
    wake_at: int | None = None
    changed_at: int | None = None
    epoch: Epoch | None = None
    compaction_requested: bool = False
    compacting: CompactionProgress = field(default_factory=CompactionProgress)
    pruned: PruneCutoff | None = None
    ratios: Mapping[str, float] = field(default_factory=dict)
    permissions: Mapping[PermissionId, PendingPermission] = field(default_factory=dict)
    questions: Mapping[QuestionId, PendingQuestion] = field(default_factory=dict)
    answered: Mapping[str, str] = field(default_factory=dict)
    """The newest answers by request, told shortly: what makes a repeated one harmless."""
    declined: str | None = None
    """What a person declined, while that stops the session."""
    todos: tuple[Todo, ...] = ()
    touched: tuple[str, ...] = ()
    """Directories in which files were read, oldest first: their instructions apply."""

    def find(self, message_id: MessageId) -> Message | None:
        """A message of the working transcript; recent ones are found first."""
        return next(
            (line.message for line in reversed(self.transcript) if line.message.id == message_id),
            None,
        )

    def open_assistant(self) -> AssistantMessage | None:
        """The newest assistant message, if no step has completed it."""
        for line in reversed(self.transcript):
            if isinstance(line.message, AssistantMessage):
                return line.message if line.message.time.completed is None else None
        return None
