"""How much of each open text a reader has. Pure."""

from typing import TypeAlias

BlockKey: TypeAlias = tuple[str, str]
"""The message of a text, and its id there."""


class TextProgress:
    """Fragments may be missing or come again from the beginning. The end of a text has all of it."""

    def __init__(self) -> None:
        self._passed: dict[BlockKey, str] = {}
        self._received: dict[BlockKey, int] = {}

    def take(self, key: BlockKey, delta: str, index: int | None) -> str:
        """The part of a fragment that the reader does not have. The number 0 begins anew."""
        passed = self._passed.get(key, "")
        begins_at = 0 if index == 0 else self._received.get(key, 0)
        new = delta[max(0, len(passed) - begins_at) :]
        self._passed[key] = passed + new
        self._received[key] = begins_at + len(delta)
        return new

    def end(self, key: BlockKey, whole: str) -> str | None:
        """The rest of a text that has ended; None: the reader has something else, or more."""
        passed = self._passed.pop(key, "")
        self._received.pop(key, None)
        return whole[len(passed) :] if whole.startswith(passed) else None

    def clear(self) -> None:
        """Forget the texts of a step that is over."""
        self._passed.clear()
        self._received.clear()
