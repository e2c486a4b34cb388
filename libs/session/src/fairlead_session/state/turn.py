"""The provider turn under way, and the compactions for it."""

from dataclasses import dataclass

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.ids import AttemptId, MessageId
from fairlead_schema.provider.structured_output import StepOutput
from fairlead_schema.tools.content import ErrorInfo


@dataclass(frozen=True, slots=True)
class FinishedStream:
    """How a provider's stream ended whose local calls are not all settled."""

    finish: str
    cost: float
    tokens: Tokens
    error: ErrorInfo | None = None
    raised: bool = False
    output: StepOutput | None = None


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
    may_change_files: bool = False
    """Whether the step made a local call that is not `pure`."""
    finished: FinishedStream | None = None
    overflow: Overflow | None = None
    estimate: int | None = None
    trace: str | None = None
    """The trace in which the turn began, if it was traced."""


@dataclass(frozen=True)
class CompactionProgress:
    """Compactions for the turn to come: how many began, and what they led to.

    A turn that is rebuilt after a compaction promotes no new input.
    """

    tries: int = 0
    overflowed: bool = False
    declined: bool = False
    rebuilding: bool = False


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
