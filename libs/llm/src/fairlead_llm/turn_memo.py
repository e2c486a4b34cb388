"""Keeps what was built from the turns of a history: later requests begin with the same turns."""

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar
from weakref import ref

Turn = TypeVar("Turn")
Built = TypeVar("Built")


class TurnMemo(Generic[Turn, Built]):
    """What was built from each turn, until nobody has the turn any more. Nobody may change it."""

    def __init__(self) -> None:
        self._built: dict[int, tuple[ref[Turn], Built]] = {}

    def __len__(self) -> int:
        return len(self._built)

    def get(self, turn: Turn, build: Callable[[Turn], Built]) -> Built:
        """What was built from this very object, or is built now."""
        kept = self._built.get(id(turn))
        if kept is not None:
            return kept[1]
        built = build(turn)
        self._built[id(turn)] = (ref(turn, partial(self._drop, id(turn))), built)
        return built

    def _drop(self, identity: int, _turn: ref[Turn]) -> None:
        self._built.pop(identity, None)
