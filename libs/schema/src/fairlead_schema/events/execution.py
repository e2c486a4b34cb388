"""Events of execution: who drains, what was dispatched, what was interrupted and recovered."""

from typing import ClassVar, Literal, TypeAlias

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.ids import AttemptId, MessageId, RunnerId
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
"""Why a session rests; all but `idle` leave something undone, and say what."""


class ExecutionClaimed(Event):
    """A runner owns the session from here on; every older generation is fenced."""

    type: ClassVar[str] = "execution.claimed"
    visibility: ClassVar[Visibility] = "private"
    generation: int
    runner: RunnerId


class ExecutionReleased(Event):
    """The owner went to rest. It could only be written with the whole inbox in sight."""

    type: ClassVar[str] = "execution.released"
    visibility: ClassVar[Visibility] = "private"
    generation: int
    reason: RestReason
    detail: str | None = None
    """One sentence for people, where the reason alone does not say enough."""
    wake_at: int | None = None
    """When a timer wakes the session again, if one was set."""


class AttemptDispatched(Event):
    """A provider request is about to leave: after a crash its outcome may be unknown."""

    type: ClassVar[str] = "attempt.dispatched"
    visibility: ClassVar[Visibility] = "private"
    attempt_id: AttemptId
    assistant_message_id: MessageId
    agent: str
    model: ModelRef
    step: int
    request_hash: str | None = None
    estimate: int | None = None
    """How many tokens its prompt was thought to have, by the plain formula."""


class AttemptOverflowed(Event):
    """The provider said, before anything else, that the prompt does not fit: compact, ask again."""

    type: ClassVar[str] = "attempt.overflowed"
    visibility: ClassVar[Visibility] = "private"
    attempt_id: AttemptId
    message: str
    in_stream: bool = False


class AttemptFinished(Event):
    """The provider's stream is complete and local calls are not: what the step will end with."""

    type: ClassVar[str] = "attempt.finished"
    visibility: ClassVar[Visibility] = "private"
    attempt_id: AttemptId
    assistant_message_id: MessageId
    finish: str
    cost: float
    tokens: Tokens
    error: ErrorInfo | None = None
    """Why the step will fail instead, when the stream broke off while calls were running."""
    raised: bool | None = None
    """True: the step's failure will fail the drain too."""


class InterruptRequested(Event):
    """Stop the active drain, keep the inbox."""

    type: ClassVar[str] = "interrupt.requested"
    visibility: ClassVar[Visibility] = "notice"
    declined: str | None = None
    """What a person declined, when that is what stops the drain."""


class ResumeRequested(Event):
    """Run at least one provider turn, even with nothing pending."""

    type: ClassVar[str] = "resume.requested"
    visibility: ClassVar[Visibility] = "notice"
    forced: bool | None = None
    """False: only what is pending is asked for; no turn is forced."""


class ExecutionRecovered(Event):
    """What a new owner found of a dead one's turn, and what it did about it."""

    type: ClassVar[str] = "execution.recovered"
    visibility: ClassVar[Visibility] = "notice"
    attempt_id: AttemptId
    action: Recovery
    detail: str
