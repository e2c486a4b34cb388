"""The canonical model request, before a protocol lowers it to a provider's wire format."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class MediaPart:
    """A file as a data URI, or as the URI of a stored attachment, with its media type."""

    uri: str
    mime: str
    name: str | None = None
    bytes: int = 0
    """The size of a stored attachment."""


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    text: str
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    call_id: str
    name: str
    input: Any
    executed: bool = False
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolResultPart:
    """A call's outcome: text, a JSON value, an error value, or content with media."""

    call_id: str
    name: str
    kind: Literal["text", "json", "error", "content"]
    value: Any
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class UserTurn:
    content: tuple[TextPart | MediaPart, ...]
    role: Literal["user"] = "user"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class AssistantTurn:
    """The model's output. Results of hosted tools stay inside this turn."""

    content: tuple[TextPart | ReasoningPart | ToolCallPart | ToolResultPart, ...]
    role: Literal["assistant"] = "assistant"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ToolTurn:
    result: ToolResultPart
    role: Literal["tool"] = "tool"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SystemTurn:
    """A chronological system message."""

    text: str
    role: Literal["system"] = "system"


Turn: TypeAlias = UserTurn | AssistantTurn | ToolTurn | SystemTurn


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    name: str
    description: str
    input_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ForcedTool:
    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | ForcedTool


@dataclass(frozen=True, slots=True)
class Generation:
    """Generation controls. Absent means the provider's default."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The request of one provider turn. `model` is the provider's own name for the model."""

    model: str
    system: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: ToolChoice = "auto"
    output_schema: dict[str, Any] | None = None
    """The schema of the answer, for the provider's own mode of structured output."""
    generation: Generation = Generation()
    cache_key: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    private_headers: frozenset[str] = frozenset()
    """Headers, in lower case, whose values a transform set: no failure and no log line repeats them."""
