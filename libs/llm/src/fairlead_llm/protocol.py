"""The interface of a wire protocol: pure functions for request bodies and response frames."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, TypeVar

from fairlead_llm import anthropic_messages, gemini, openai_chat, openai_responses
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import ProviderEvent
from fairlead_schema.provider.request import ModelRequest

StreamState = TypeVar("StreamState")
Events: TypeAlias = tuple[ProviderEvent, ...]


class WireProtocol(Protocol[StreamState]):
    """One API family. Each protocol package implements it with module functions, without I/O."""

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """The JSON body to post. Raises UnsendableRequest."""
        ...

    def path(self, request: ModelRequest) -> str:
        """The path below the base URL, with its version segment first."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """The headers for the key and the protocol's version."""
        ...

    def start(self) -> StreamState:
        """The state before the first frame."""
        ...

    def step(self, state: StreamState, frame: Frame) -> tuple[StreamState, Events]:
        """Read one frame. A StepFinish or a ProviderFailure is the last event of the stream."""
        ...

    def finish(self, state: StreamState) -> Events:
        """The last events of a body: a truncation failure, or none after the end marker."""
        ...


PROTOCOLS: Mapping[str, WireProtocol[Any]] = MappingProxyType(
    {
        "anthropic-messages": anthropic_messages,
        "gemini": gemini,
        "openai-chat": openai_chat,
        "openai-responses": openai_responses,
    }
)
