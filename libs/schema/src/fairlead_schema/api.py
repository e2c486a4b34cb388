"""The API models that HTTP and NATS share: commands, answers, and the session as readers see it."""

from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field, StringConstraints

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.errors import WireError
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import InputModel, Model, NoNull
from fairlead_schema.prompt import Delivery, PromptInput
from fairlead_schema.revert import RevertState

AgentName = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Data = TypeVar("Data")


class BudgetBody(InputModel):
    """How much a session may use in all; an absent limit is no limit."""

    cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    tokens: Annotated[int, Field(ge=0, lt=2**53)] | None = None


class CreateSession(InputModel):
    """`session.create`: make a session, or find the one that has this id."""

    id: SessionId | None = None
    agent: AgentName | None = None
    model: Annotated[ModelRef, NoNull] | None = None
    location: Annotated[LocationRef, NoNull] | None = None
    parent_id: SessionId | None = None
    budget: Annotated[BudgetBody, NoNull] | None = None
    timezone: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    """Whose calendar the model is told, such as `Europe/Oslo`; else the configured one."""


class PromptBody(InputModel):
    """The body of a prompt over HTTP."""

    id: MessageId | None = None
    prompt: PromptInput
    delivery: Delivery = "steer"
    resume: bool = True
    expected_turn: MessageId | None = None
    """Admit a steer only while this assistant message is being answered; else nothing happens."""


class AdmitPrompt(PromptBody):
    """`session.prompt`: admit one prompt, durably, once."""

    session_id: SessionId


class SessionTime(Model):
    created: int
    updated: int
    archived: int | None = None


class SessionInfo(Model):
    """A session as readers see it."""

    id: SessionId
    parent_id: SessionId | None = None
    project_id: str
    agent: str | None = None
    model: ModelRef | None = None
    cost: float = 0
    tokens: Tokens = Tokens()
    time: SessionTime
    title: str
    location: LocationRef
    subpath: str | None = None
    revert: RevertState | None = None


class Answer(Model, Generic[Data]):
    """What a NATS request gets back: data, or a typed error."""

    data: Data | None = None
    error: WireError | None = None


class Durable(Model):
    """Where an event stands in its session's log."""

    aggregate_id: SessionId
    seq: int
    version: int


class EventEnvelope(Model):
    """An event as clients read it: from history, the stream or the feed."""

    id: str
    type: str
    data: dict[str, Any]
    durable: Durable | None = None
    location: LocationRef | None = None
    metadata: dict[str, Any] | None = Field(default=None)


class DeadLetter(Model):
    """A message that can never be handled, with the reason, so that nobody loops on it."""

    subject: str
    reason: str
    payload: str
    headers: dict[str, str] = Field(default_factory=dict)
