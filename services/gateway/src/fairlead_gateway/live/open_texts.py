"""What the open blocks of a session say so far, put together from numbered deltas.

A client that comes in the middle gets the text so far and then the deltas after it. Each delta counts
once: a known number is dropped, and a delta behind a gap waits until the runner was asked for the text.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fairlead_schema.delta import (
    Delta,
    NumberedDelta,
    OpenText,
    ReasoningDelta,
    TextDelta,
    ToolInputDelta,
)
from fairlead_schema.events import (
    AttemptDispatched,
    ReasoningEnded,
    StepEnded,
    StepFailed,
    TextEnded,
    ToolInputEnded,
)
from fairlead_schema.raw_records.raw_commit import RawEvent

BlockKey: TypeAlias = tuple[str, str, str]
"""The kind of a block, its message and its own id."""

_ENDS: Final = {
    TextEnded: ("text", "textID"),
    ReasoningEnded: ("reasoning", "reasoningID"),
    ToolInputEnded: ("tool", "callID"),
}
_ENDS_STEP: Final = frozenset({StepEnded, StepFailed})


@dataclass(slots=True)
class _Block:
    first: NumberedDelta
    """Any delta of the block: it says which block this is."""
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    next: int = 0
    """The number of the delta that comes next."""
    ahead: dict[int, NumberedDelta] = field(default_factory=dict)
    has_hole: bool = False
    """Whether some text is missing, so that nobody can be told the text so far."""

    def add(self, text: str, deltas: int) -> None:
        self.pieces.append(text)
        self.length += len(text)
        self.next += deltas

    def take_ahead(self) -> str:
        """The text of the deltas that follow now without a gap."""
        taken: list[str] = []
        while (delta := self.ahead.pop(self.next, None)) is not None:
            self.add(delta.delta, 1)
            taken.append(delta.delta)
        return "".join(taken)


class OpenBlocks:
    """The open blocks of one session. Every method returns the deltas that clients get now."""

    def __init__(self) -> None:
        self._blocks: dict[BlockKey, _Block] = {}
        self._ended: set[BlockKey] = set()

    @property
    def has_gap(self) -> bool:
        """Whether a delta waits for one that is missing."""
        return any(block.ahead for block in self._blocks.values())

    def receive(self, delta: Delta) -> Delta | None:
        """A delta that came; None if clients have it already, or if one before it is missing."""
        if not isinstance(delta, TextDelta | ReasoningDelta | ToolInputDelta):
            return delta
        key, index = _key(delta), delta.index
        if index is None:
            return delta
        if key in self._ended:
            return None
        block = self._blocks.setdefault(key, _Block(delta))
        if index < block.next:
            return None
        if index > block.next:
            block.ahead[index] = delta
            return None
        block.add(delta.delta, 1)
        more = block.take_ahead()
        return delta.model_copy(update={"delta": delta.delta + more}) if more else delta

    def restore(self, texts: Iterable[OpenText]) -> list[Delta]:
        """Take what the runner knows, and give up what it does not know: that block has ended."""
        news = [delta for text in texts if (delta := self._restore(text)) is not None]
        for key, block in list(self._blocks.items()):
            if block.ahead:
                del self._blocks[key]
                self._ended.add(key)
        return news

    def skip_gaps(self) -> list[Delta]:
        """Pass on what waits behind a gap: nobody can say what is missing. The numbers show the gap."""
        news: list[Delta] = []
        for block in self._blocks.values():
            while block.ahead:
                block.has_hole, block.next = True, min(block.ahead)
                first = block.ahead[block.next]
                news.append(first.model_copy(update={"delta": block.take_ahead()}))
        return news

    def so_far(self) -> list[Delta]:
        """The text of every open block, for a client that joins now."""
        return [
            block.first.model_copy(update={"delta": "".join(block.pieces), "index": 0})
            for block in self._blocks.values()
            if block.next and not block.has_hole
        ]

    def note(self, events: Iterable[RawEvent]) -> None:
        """Forget the blocks that these events end."""
        for event in events:
            if event.kind is AttemptDispatched:
                # Deltas of the new attempt may be here before this event is.
                self._forget_others(event.data["assistantMessageID"])
            elif event.kind in _ENDS_STEP:
                self._forget_others(None)
            elif event.kind in _ENDS:
                kind, name = _ENDS[event.kind]
                key = (kind, event.data["assistantMessageID"], event.data[name])
                self._blocks.pop(key, None)
                self._ended.add(key)

    def _forget_others(self, message_id: str | None) -> None:
        """Forget the blocks of every message but this one."""
        self._blocks = {key: block for key, block in self._blocks.items() if key[1] == message_id}
        self._ended = {key for key in self._ended if key[1] == message_id}

    def _restore(self, text: OpenText) -> Delta | None:
        so_far, key = text.so_far, _key(text.so_far)
        if key in self._ended:
            return None
        block = self._blocks.setdefault(key, _Block(so_far))
        if block.has_hole:
            return None
        index = block.next
        missing = so_far.delta[block.length :] if text.deltas > index else ""
        if text.deltas > index:
            block.add(missing, text.deltas - index)
            block.ahead = {at: delta for at, delta in block.ahead.items() if at >= block.next}
        missing += block.take_ahead()
        return so_far.model_copy(update={"delta": missing, "index": index}) if missing else None


def _key(delta: NumberedDelta) -> BlockKey:
    match delta:
        case TextDelta():
            return "text", delta.assistant_message_id, delta.text_id
        case ReasoningDelta():
            return "reasoning", delta.assistant_message_id, delta.reasoning_id
        case ToolInputDelta():
            return "tool", delta.assistant_message_id, delta.call_id
