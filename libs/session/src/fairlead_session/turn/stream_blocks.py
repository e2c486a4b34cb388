"""The open blocks of one provider stream: text, reasoning and tool input, from start to end.

The start and the end of a block are durable events, and the end holds the full text. The chunks in
between are live deltas.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, assert_never

from fairlead_schema.delta import NumberedDelta, OpenText, ReasoningDelta, TextDelta, ToolInputDelta
from fairlead_schema.events import (
    ReasoningEnded,
    ReasoningStarted,
    SessionEvent,
    TextEnded,
    TextStarted,
    ToolInputEnded,
    ToolInputStarted,
)
from fairlead_schema.ids import MessageId
from fairlead_schema.provider.events import (
    ReasoningChunk,
    ReasoningEnd,
    ReasoningStart,
    TextChunk,
    TextEnd,
    TextStart,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
)
from fairlead_session.turn.stream_calls import ProtocolViolation

# Far more than any answer needs, and about as much as one commit can hold: a stream may never end.
BLOCK_LENGTH_MAX: Final = 4 * 1024 * 1024

BlockKind: TypeAlias = Literal["text", "reasoning", "tool"]
BlockStart: TypeAlias = TextStart | ReasoningStart | ToolInputStart
BlockChunk: TypeAlias = TextChunk | ReasoningChunk | ToolInputChunk
BlockEnd: TypeAlias = TextEnd | ReasoningEnd | ToolInputEnd


@dataclass(slots=True)
class _Block:
    chunks: list[str] = field(default_factory=list)
    length: int = 0

    @property
    def text(self) -> str:
        return "".join(self.chunks)


@dataclass(slots=True)
class StreamBlocks:
    """The blocks that have started and not ended."""

    assistant_message_id: MessageId
    _open: dict[tuple[BlockKind, str], _Block] = field(default_factory=dict)

    def check_new(self, event: BlockStart) -> None:
        """Raises ProtocolViolation if the block is open already."""
        kind = _KINDS[type(event)]
        if (kind, event.id) in self._open:
            raise ProtocolViolation(f"{kind} {event.id} started twice")

    def start(self, event: BlockStart) -> SessionEvent:
        """Open a block."""
        self._open[_KINDS[type(event)], event.id] = _Block()
        owner = self.assistant_message_id
        match event:
            case TextStart(id=id_):
                return TextStarted(assistant_message_id=owner, text_id=id_)
            case ReasoningStart(id=id_, metadata=metadata):
                return ReasoningStarted(
                    assistant_message_id=owner, reasoning_id=id_, provider_metadata=metadata
                )
            case ToolInputStart(id=id_, name=name):
                return ToolInputStarted(assistant_message_id=owner, call_id=id_, name=name)
            case _:
                assert_never(event)

    def add_chunk(self, event: BlockChunk) -> NumberedDelta:
        """Add text to an open block. Raises ProtocolViolation."""
        kind = _KINDS[type(event)]
        block = self._open.get((kind, event.id))
        if block is None:
            raise ProtocolViolation(f"{kind} {event.id} continued before it started")
        if block.length + len(event.text) > BLOCK_LENGTH_MAX:
            raise ProtocolViolation(
                f"{kind} {event.id} is longer than {BLOCK_LENGTH_MAX} characters"
            )
        index = len(block.chunks)
        block.chunks.append(event.text)
        block.length += len(event.text)
        return self._delta(kind, event.id, event.text, index)

    def so_far(self) -> tuple[OpenText, ...]:
        """The text of every open block that has some."""
        return tuple(
            OpenText(so_far=self._delta(kind, id_, block.text, 0), deltas=len(block.chunks))
            for (kind, id_), block in self._open.items()
            if block.chunks
        )

    def _delta(self, kind: BlockKind, id_: str, text: str, index: int) -> NumberedDelta:
        owner = self.assistant_message_id
        if kind == "text":
            return TextDelta(assistant_message_id=owner, text_id=id_, delta=text, index=index)
        if kind == "reasoning":
            return ReasoningDelta(
                assistant_message_id=owner, reasoning_id=id_, delta=text, index=index
            )
        return ToolInputDelta(assistant_message_id=owner, call_id=id_, delta=text, index=index)

    def end(self, event: BlockEnd) -> SessionEvent:
        """Close a block. Raises ProtocolViolation."""
        kind = _KINDS[type(event)]
        block = self._open.pop((kind, event.id), None)
        if block is None:
            raise ProtocolViolation(f"{kind} {event.id} ended before it started")
        metadata = None if isinstance(event, ToolInputEnd) else event.metadata
        return self._end_event(kind, event.id, block.text, metadata)

    def end_tool_input(self, call_id: str) -> SessionEvent | None:
        """Close the input of a tool call. None if no input is open."""
        block = self._open.pop(("tool", call_id), None)
        return None if block is None else self._end_event("tool", call_id, block.text)

    def flush(self) -> tuple[SessionEvent, ...]:
        """Close all open blocks with their text: texts, then reasoning, then tool inputs."""
        blocks, self._open = self._open, {}
        return tuple(
            self._end_event(kind, id_, block.text)
            for order in ("text", "reasoning", "tool")
            for (kind, id_), block in blocks.items()
            if kind == order
        )

    def _end_event(
        self, kind: BlockKind, id_: str, text: str, metadata: dict[str, Any] | None = None
    ) -> SessionEvent:
        owner = self.assistant_message_id
        if kind == "text":
            return TextEnded(
                assistant_message_id=owner, text_id=id_, text=text, provider_metadata=metadata
            )
        if kind == "reasoning":
            return ReasoningEnded(
                assistant_message_id=owner, reasoning_id=id_, text=text, provider_metadata=metadata
            )
        return ToolInputEnded(assistant_message_id=owner, call_id=id_, text=text)


_KINDS: Final[dict[type, BlockKind]] = {
    TextStart: "text",
    TextChunk: "text",
    TextEnd: "text",
    ReasoningStart: "reasoning",
    ReasoningChunk: "reasoning",
    ReasoningEnd: "reasoning",
    ToolInputStart: "tool",
    ToolInputChunk: "tool",
    ToolInputEnd: "tool",
}
