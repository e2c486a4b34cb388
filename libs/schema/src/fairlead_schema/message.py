"""Messages: the entries of a session's transcript, one class per `type`."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.ids import CallId, MessageId, SessionId
from fairlead_schema.model import Model
from fairlead_schema.prompt import AgentMention, PromptFile, PromptOptions
from fairlead_schema.provider.structured_output import StepOutput
from fairlead_schema.tools.content import CallExecutor, ErrorInfo, ToolState


class CreationTime(Model):
    """When a message was created, in epoch milliseconds."""

    created: int


class Span(CreationTime):
    """When a message was created and completed."""

    completed: int | None = None


class CallSpan(Span):
    """When a tool call was created, started, settled and pruned."""

    ran: int | None = None
    pruned: int | None = None


class _Message(Model):
    id: MessageId
    metadata: dict[str, Any] | None = None


class AgentSwitchedMessage(_Message):
    type: Literal["agent-switched"] = "agent-switched"
    agent: str
    time: CreationTime


class ModelSwitchedMessage(_Message):
    type: Literal["model-switched"] = "model-switched"
    model: ModelRef
    time: CreationTime


class UserMessage(_Message, PromptOptions):
    type: Literal["user"] = "user"
    text: str
    files: tuple[PromptFile, ...] | None = None
    agents: tuple[AgentMention, ...] | None = None
    time: CreationTime


class SyntheticMessage(_Message):
    type: Literal["synthetic"] = "synthetic"
    session_id: SessionId
    text: str
    time: CreationTime


class SystemMessage(_Message):
    type: Literal["system"] = "system"
    text: str
    time: CreationTime


class ShellMessage(_Message):
    type: Literal["shell"] = "shell"
    call_id: CallId
    command: str
    output: str
    exit: int | None = None
    """The exit code of a command that ran to its end."""
    time: Span


class CompactionMessage(_Message):
    type: Literal["compaction"] = "compaction"
    reason: Literal["auto", "manual"]
    summary: str
    recent: str
    time: CreationTime


class TextBlock(Model):
    type: Literal["text"] = "text"
    id: str
    text: str
    provider_metadata: dict[str, Any] | None = None


class ReasoningBlock(Model):
    type: Literal["reasoning"] = "reasoning"
    id: str
    text: str
    provider_metadata: dict[str, Any] | None = None
    time: Span | None = None


class ToolBlock(Model):
    type: Literal["tool"] = "tool"
    id: CallId
    name: str
    provider: CallExecutor | None = None
    state: ToolState
    time: CallSpan


Content: TypeAlias = Annotated[TextBlock | ReasoningBlock | ToolBlock, Field(discriminator="type")]


class FileSnapshot(Model):
    """The file tree before and after a step, if the location keeps snapshots."""

    start: str | None = None
    end: str | None = None
    files: tuple[str, ...] | None = None


class AssistantMessage(_Message):
    type: Literal["assistant"] = "assistant"
    agent: str
    model: ModelRef
    content: tuple[Content, ...] = ()
    snapshot: FileSnapshot | None = None
    finish: str | None = None
    cost: float | None = None
    tokens: Tokens | None = None
    error: ErrorInfo | None = None
    output: StepOutput | None = None
    """The structured output, if a prompt asked for one."""
    time: Span


Message: TypeAlias = Annotated[
    AgentSwitchedMessage
    | ModelSwitchedMessage
    | UserMessage
    | SyntheticMessage
    | SystemMessage
    | ShellMessage
    | CompactionMessage
    | AssistantMessage,
    Field(discriminator="type"),
]

MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)
