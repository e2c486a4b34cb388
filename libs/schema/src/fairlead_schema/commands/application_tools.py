"""Application tools: what a service says to register one, is asked to run, and answers."""

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


class NameTool(InputModel):
    """`tool.unregister`: which registration is meant."""

    name: ToolName
    service: ServiceName = "default"
    """Who registers it: two services may register one name, and the latest answers."""
    location: Directory | None = None
    """Offered there alone, before what is offered everywhere; without it, everywhere."""


class RegisterTool(NameTool):
    """`tool.register`: offer a tool from now on, or say that it is still there."""

    description: Annotated[str, StringConstraints(max_length=DESCRIPTION_LENGTH_MAX)]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    subject: Subject
    """Where its calls go: below `fairlead.app.<t>.`, for a queue below `fairlead.job.<t>.`."""
    mode: Literal["request", "queue"] = "request"
    timeout_ms: int = Field(default=120_000, ge=1, le=30 * DAY_MS)
    retry: RetryClass = "once"
    action: ToolName | None = None
    """The permission action that rules speak of; else the name."""
    ttl_ms: int | None = Field(default=None, ge=1000, le=30 * DAY_MS)
    """The registration ends when it is not repeated for so long; without it, never by itself."""

    @model_validator(mode="after")
    def _answers_fit_a_request(self) -> Self:
        if self.mode == "request" and self.timeout_ms > DAY_MS // 24:
            raise ValueError("an answer that takes more than an hour belongs in a queue")
        return self


class RegisteredTool(RegisterTool):
    """A registration as it stands."""

    since: int
    """When it was first registered as it is now: the latest of several answers to the name."""
    expires: int | None = None


class RegisteredTools(Model):
    """`tool.list`: what a tenant's services have registered, oldest first."""

    tools: tuple[RegisteredTool, ...]


class ListRegistered(InputModel):
    """`tool.list` asks for nothing but its tenant."""


class ToolTask(Model):
    """One call, as the service that registered the tool is asked to run it."""

    tenant: TenantId
    session_id: SessionId
    assistant_message_id: MessageId
    call_id: CallId
    key: str
    """The same whenever this call is sent: do not act twice for one key."""
    tool: str
    input: dict[str, Any]
    agent: str
    location: LocationRef
    deadline: int | None = None
    """When a queued call is given up."""


class ToolAnswer(InputModel):
    """What came of it: an output, or an error in words for the model."""

    output: Json = None
    content: tuple[ToolContent, ...] | None = None
    error: ErrorInfo | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if self.error is not None and (self.output is not None or self.content is not None):
            raise ValueError("an answer is an output or an error, not both")
        return self


class SettleTool(ToolAnswer):
    """`tool.settle`: the outcome of a call that was left in a queue."""

    session_id: SessionId
    assistant_message_id: MessageId
    call_id: CallId


class Unregistered(Model):
    """What `tool.unregister` took away: nothing, if nothing was there."""

    name: str
    removed: bool


class Settled(Model):
    """The call has its outcome."""

    session_id: SessionId
    call_id: CallId
