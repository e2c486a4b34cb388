"""Drops what a client has seen already when its stream begins anew in the middle of a text.

A new connection gets each open text from its beginning, as a fragment with the number 0. A fragment with
another number follows a gap that nobody can fill: the rest of that text waits for the event that ends it.
"""

from typing import Final

from fairlead_client.received_event import ReceivedEvent

_BLOCKS: Final = {
    "text.delta": "textID",
    "reasoning.delta": "reasoningID",
    "tool.input.delta": "callID",
}
_ENDS: Final = frozenset({"step.ended", "step.failed"})


class _Block:
    __slots__ = ("is_cut", "passed", "received")

    def __init__(self) -> None:
        self.passed = 0
        """So many characters were handed out."""
        self.received = 0
        """So many characters came over this connection."""
        self.is_cut = False


class FragmentFilter:
    """What was handed out of each open text."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, str, str], _Block] = {}

    def reconnect(self) -> None:
        """Expect every open text from its beginning."""
        for block in self._blocks.values():
            block.received = 0

    def take(self, event: ReceivedEvent) -> ReceivedEvent | None:
        """The event, or the part of a fragment that is new; None if nothing is."""
        if event.seq is not None:
            if event.type in _ENDS:
                self._blocks.clear()
            return event
        key, data = _key(event), event.data
        if key is None:
            return event
        block = self._blocks.setdefault(key, _Block())
        if block.passed and not block.received:
            block.is_cut = data.get("index") not in {0, None}
        if block.is_cut:
            return None
        return _unseen(block, event)


class FragmentOrder:
    """Notices fragments that were lost on one connection, by their numbers."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, str, str], int] = {}

    def is_after_gap(self, event: ReceivedEvent) -> bool:
        """Whether fragments before this one are missing. The first of a text begins wherever it does."""
        index, key = event.data.get("index"), _key(event)
        if key is None or not isinstance(index, int):
            return False
        expected = self._next.get(key, index)
        if index == 0:
            self._next.clear()  # Most texts end before the next one begins.
        self._next[key] = index + 1
        return index != expected


def _key(event: ReceivedEvent) -> tuple[str, str, str] | None:
    """The text that a fragment belongs to; None for fragments without a number."""
    name, data = _BLOCKS.get(event.type), event.data
    if name is None or not isinstance(data.get("delta"), str):
        return None
    return event.type, str(data.get("assistantMessageID")), str(data.get(name))


def _unseen(block: _Block, event: ReceivedEvent) -> ReceivedEvent | None:
    text: str = event.data["delta"]
    begins_at = block.received
    block.received += len(text)
    if block.received <= block.passed:
        return None
    new = text[block.passed - begins_at :]
    block.passed = block.received
    return event if new == text else event._replace(data={**event.data, "delta": new})
