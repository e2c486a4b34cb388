"""What a wire protocol is: pure functions from a request to a body, and from frames to events."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, TypeVar

from fairlead_llm import anthropic_messages, gemini, openai_chat, openai_responses
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import ProviderEvent
from fairlead_schema.provider.request import ModelRequest

State = TypeVar("State")
Events: TypeAlias = tuple[ProviderEvent, ...]


class Wire(Protocol[State]):
    """One API family. A module of functions is one; nothing in it does I/O."""

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """The JSON body to post. Raises Unsendable."""
        ...

    def path(self, request: ModelRequest) -> str:
        """Where to post it, below the base URL, with its version segment first."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """The headers that authenticate and name the protocol's version."""
        ...

    def start(self) -> State:
        """The state before the first frame."""
        ...

    def step(self, state: State, frame: Frame) -> tuple[State, Events]:
        """Take one frame. A StepFinish or a ProviderFailure is the last event ever given."""
        ...

    def finish(self, state: State) -> Events:
        """The body ended: nothing when the end marker was seen, else a truncation failure."""
        ...


WIRES: Mapping[str, Wire[Any]] = MappingProxyType(
    {
        "anthropic-messages": anthropic_messages,
        "gemini": gemini,
        "openai-chat": openai_chat,
        "openai-responses": openai_responses,
    }
)
