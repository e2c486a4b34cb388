"""Canonical provider events, the same for all providers. Dataclasses, because streams are hot."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

# `pause` means that the provider stopped in the middle of a hosted tool: ask again to go on.
Finish: TypeAlias = Literal[
    "stop", "length", "tool-calls", "content-filter", "pause", "error", "unknown"
]
FailureKind: TypeAlias = Literal[
    "rate-limit",
    "overloaded",
    "auth",
    "invalid-request",
    "context-overflow",
    "content-filter",
    "network",
    "timeout",
    "malformed-stream",
    "stream-truncated",
    "server-error",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class TextStart:
    id: str


@dataclass(frozen=True, slots=True)
class TextChunk:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class TextEnd:
    id: str
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReasoningStart:
    id: str
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReasoningChunk:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnd:
    id: str
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolInputStart:
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolInputChunk:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolInputEnd:
    id: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete call. `input` is the parsed value, or the raw text when it is not JSON."""

    id: str
    name: str
    input: Any
    executed: bool = False
    metadata: dict[str, Any] | None = None
    invalid: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a hosted tool, which the provider ran itself."""

    id: str
    value: Any
    error: bool = False
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ProviderUsage:
    """Token counts. No token is counted twice; an unknown count is `None`, never 0."""

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class StepFinish:
    finish: Finish
    usage: ProviderUsage
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """The provider refused or broke off. `in_stream` is true for an error inside the stream."""

    kind: FailureKind
    message: str
    in_stream: bool = False
    retryable: bool = False
    status: int | None = None
    retry_after_s: float | None = None
    body: str | None = None


ProviderEvent: TypeAlias = (
    TextStart
    | TextChunk
    | TextEnd
    | ReasoningStart
    | ReasoningChunk
    | ReasoningEnd
    | ToolInputStart
    | ToolInputChunk
    | ToolInputEnd
    | ToolCall
    | ToolResult
    | StepFinish
    | ProviderFailure
)
