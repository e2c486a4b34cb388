"""Application tools: commands to register them, the task to run, and the answer of the service."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from fairlead_schema.ids import CallId, MessageId, SessionId, TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import InputModel, Model
from fairlead_schema.tools.content import ErrorInfo, Json, RetryClass, ToolContent

DAY_MS = 24 * 60 * 60 * 1000
DESCRIPTION_LENGTH_MAX = 20_000

ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
ServiceName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Directory = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Subject = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+$", max_length=200)
]


class ToolRegistrationKey(InputModel):
    """`tool.unregister`: the name, service and location that identify a registration."""

    name: ToolName
    service: ServiceName = "default"
    """The registering service. Two services may register one name; calls go to the latest."""
    location: Directory | None = None
    """The one location that offers the tool, ahead of global tools. Absent: every location."""


class RegisterTool(ToolRegistrationKey):
    """`tool.register`: offer a tool, or renew its registration."""

    description: Annotated[str, StringConstraints(max_length=DESCRIPTION_LENGTH_MAX)]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    subject: Subject
    """The subject for calls: below `fairlead.app.<t>.`, for a queue below `fairlead.job.<t>.`."""
    mode: Literal["request", "queue"] = "request"
    timeout_ms: int = Field(default=120_000, ge=1, le=30 * DAY_MS)
    retry: RetryClass = "once"
    action: ToolName | None = None
    """Permission rules name `app:` and this action. Absent: `app:` and the name of the tool."""
    ttl_ms: int | None = Field(default=None, ge=1000, le=30 * DAY_MS)
    """The registration ends if it is not renewed for so long. Absent: it does not expire."""

    @model_validator(mode="after")
    def _require_queue_for_long_answers(self) -> Self:
        if self.mode == "request" and self.timeout_ms > DAY_MS // 24:
            raise ValueError("an answer that takes more than an hour belongs in a queue")
        return self


class RegisteredTool(RegisterTool):
    """A registration in force."""

    since: int
    """When the registration got its current form. Calls go to the latest registration of a name."""
    expires: int | None = None


class RegisteredTools(Model):
    """The answer of `tool.list`: all registered tools of a tenant, oldest first."""

    tools: tuple[RegisteredTool, ...]


class ListRegisteredTools(InputModel):
    """`tool.list`: list the registered tools of a tenant. It has no fields."""


class ToolTask(Model):
    """The request to the service of an application tool: run one call."""

    tenant: TenantId
    session_id: SessionId
    assistant_message_id: MessageId
    call_id: CallId
    key: str
    """The idempotency key of the call. The service must not act twice for one key."""
    tool: str
    input: dict[str, Any]
    agent: str
    location: LocationRef
    deadline: int | None = None
    """When Fairlead gives up a queued call, in epoch milliseconds."""


class ToolAnswer(InputModel):
    """The outcome of a call: an output, or an error text for the model."""

    output: Json = None
    content: tuple[ToolContent, ...] | None = None
    error: ErrorInfo | None = None

    @model_validator(mode="after")
    def _refuse_output_with_error(self) -> Self:
        if self.error is not None and (self.output is not None or self.content is not None):
            raise ValueError("an answer is an output or an error, not both")
        return self


class SettleTool(ToolAnswer):
    """`tool.settle`: the outcome of a queued call."""

    session_id: SessionId
    assistant_message_id: MessageId
    call_id: CallId


class ToolUnregistered(Model):
    """The answer of `tool.unregister`. `removed` is false if there was no such registration."""

    name: str
    removed: bool


class CallSettled(Model):
    """The answer of `tool.settle`: the call has its settlement."""

    session_id: SessionId
    call_id: CallId
