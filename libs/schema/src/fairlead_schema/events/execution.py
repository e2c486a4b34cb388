"""Events of execution: ownership, attempts, interrupts, resumes and recovery."""

from typing import ClassVar, Literal, TypeAlias

from typing_extensions import override

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.ids import AttemptId, MessageId, RunnerId
from fairlead_schema.model import Model
from fairlead_schema.prompt import OPTIONS_LEVEL
from fairlead_schema.provider.structured_output import StepOutput
from fairlead_schema.tools.content import ErrorInfo

Recovery: TypeAlias = Literal["retried", "closed", "settled", "held", "handover"]
RestReason: TypeAlias = Literal[
    "idle",
    "parked",
    "interrupted",
    "failed",
    "context-unavailable",
    "held",
    "handover",
    "retry-later",
    "turn-limit",
    "repeated-calls",
    "over-budget",
    "budget-unknown",
    "declined",
]
"""Why a session rests. Every reason except `idle` leaves work open."""


class ExecutionClaimed(Event):
    """A runner becomes the owner. The log refuses writes of every older generation."""

    type: ClassVar[str] = "execution.claimed"
    visibility: ClassVar[Visibility] = "private"
    generation: int
    runner: RunnerId


class ExecutionReleased(Event):
    """The owner rests. Only an owner that has read the whole inbox can write this event."""

    type: ClassVar[str] = "execution.released"
    visibility: ClassVar[Visibility] = "notice"
    generation: int
    reason: RestReason
    detail: str | None = None
    """One sentence for people, where the reason alone does not say enough."""
    wake_at: int | None = None
    """When the session's timer wakes it again."""


class TransformUse(Model):
    """One transform of a request: its version, and what it did or how it failed."""

    name: str
    version: str
    outcome: str
    """`applied`, `unchanged`, or the kind of its failure. An open list: older releases read it."""


class AttemptDispatched(Event):
    """A runner is about to send a provider request. After a crash its outcome may be unknown."""

    type: ClassVar[str] = "attempt.dispatched"
    visibility: ClassVar[Visibility] = "private"
    attempt_id: AttemptId
    assistant_message_id: MessageId
    agent: str
    model: ModelRef
    step: int
    request_hash: str | None = None
    estimate: int | None = None
    """The estimated number of prompt tokens, before any correction by measured usage."""
    transforms: tuple[TransformUse, ...] | None = None
    """The transforms of the request, in their order; None without any."""
    trace: str | None = None
    """The trace of the turn as a W3C `traceparent`, so that later owners link to it; None untraced."""


class AttemptOverflowed(Event):
    """The provider refused the prompt as too long, before any output: compact and ask again."""

    type: ClassVar[str] = "attempt.overflowed"
    visibility: ClassVar[Visibility] = "private"
    attempt_id: AttemptId
    message: str
    in_stream: bool = False


class AttemptFinished(Event):
    """The stream is complete while local calls still run. The step will end with these values."""

    type: ClassVar[str] = "attempt.finished"
    visibility: ClassVar[Visibility] = "private"
    attempt_id: AttemptId
    assistant_message_id: MessageId
    finish: str
    cost: float
    tokens: Tokens
    error: ErrorInfo | None = None
    """Why the step will fail: the stream broke off while calls were running."""
    raised: bool | None = None
    """True: the step's failure will fail the drain too."""
    output: StepOutput | None = None
    """The structured output that the step will end with."""

    @property
    @override
    def needed_level(self) -> int:
        return self.level if self.output is None else OPTIONS_LEVEL


class InterruptRequested(Event):
    """Stop the active drain and keep the inbox."""

    type: ClassVar[str] = "interrupt.requested"
    visibility: ClassVar[Visibility] = "notice"
    declined: str | None = None
    """The permission that a person declined, if the decline caused this interrupt."""


class ResumeRequested(Event):
    """Run at least one provider turn, even with nothing pending."""

    type: ClassVar[str] = "resume.requested"
    visibility: ClassVar[Visibility] = "notice"
    forced: bool | None = None
    """False: run pending input only, and force no turn."""


class CommandAnswered(Event):
    """A command with an idempotency key is decided, by the events of this commit before this one.

    The same command again decides nothing and gets the same answer.
    """

    type: ClassVar[str] = "command.answered"
    level: ClassVar[int] = 2
    visibility: ClassVar[Visibility] = "private"
    key: str
    """A hash of the principal, the session, the verb and the key that the caller chose."""
    body: str
    """A hash of the command. The same key with another command is a conflict."""
    interrupts: bool | None = None
    """True: the command stopped or dropped work."""


class ExecutionRecovered(Event):
    """How a new owner recovered the open turn of a dead owner."""

    type: ClassVar[str] = "execution.recovered"
    visibility: ClassVar[Visibility] = "notice"
    attempt_id: AttemptId
    action: Recovery
    detail: str
