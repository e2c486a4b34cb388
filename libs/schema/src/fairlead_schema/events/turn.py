"""Events of a provider turn: steps, text, reasoning, retries. End events carry the full text."""

from typing import Any, ClassVar

from typing_extensions import override

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events.event import Event
from fairlead_schema.ids import MessageId
from fairlead_schema.model import Model
from fairlead_schema.prompt import OPTIONS_LEVEL
from fairlead_schema.provider.structured_output import StepOutput
from fairlead_schema.tools.content import ErrorInfo


class StepStarted(Event):
    type: ClassVar[str] = "step.started"
    assistant_message_id: MessageId
    agent: str
    model: ModelRef
    snapshot: str | None = None


class StepEnded(Event):
    type: ClassVar[str] = "step.ended"
    assistant_message_id: MessageId
    finish: str
    cost: float
    tokens: Tokens
    snapshot: str | None = None
    files: tuple[str, ...] | None = None
    output: StepOutput | None = None
    """The judgement of the step's structured output, if a prompt asked for one."""

    @property
    @override
    def needed_level(self) -> int:
        return self.level if self.output is None else OPTIONS_LEVEL


class StepFailed(Event):
    type: ClassVar[str] = "step.failed"
    assistant_message_id: MessageId
    error: ErrorInfo
    raised: bool | None = None
    """True: the request failed, so the drain fails and pending input waits. Hidden from clients."""


class TextStarted(Event):
    type: ClassVar[str] = "text.started"
    assistant_message_id: MessageId
    text_id: str


class TextEnded(Event):
    type: ClassVar[str] = "text.ended"
    assistant_message_id: MessageId
    text_id: str
    text: str
    provider_metadata: dict[str, Any] | None = None


class ReasoningStarted(Event):
    type: ClassVar[str] = "reasoning.started"
    assistant_message_id: MessageId
    reasoning_id: str
    provider_metadata: dict[str, Any] | None = None


class ReasoningEnded(Event):
    type: ClassVar[str] = "reasoning.ended"
    assistant_message_id: MessageId
    reasoning_id: str
    text: str
    provider_metadata: dict[str, Any] | None = None


class RetryError(Model):
    """Why a turn is attempted again."""

    message: str
    status_code: int | None = None
    is_retryable: bool
    response_headers: dict[str, str] | None = None
    response_body: str | None = None
    metadata: dict[str, str] | None = None


class TurnRetried(Event):
    type: ClassVar[str] = "retried"
    attempt: int
    error: RetryError
