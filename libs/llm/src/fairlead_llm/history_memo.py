"""Remembers what a protocol makes of the first turns of a history, so that a long one is not joined anew.

A turn that was sent costs a request nothing but the comparison of its identity. What is remembered
goes with the first of its turns that goes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar
from weakref import ReferenceType, ref

from fairlead_llm.turn_memo import has_media
from fairlead_schema.provider.request import Turn

Item = TypeVar("Item")

TURNS_MIN: Final = 16
"""In a shorter history there is nothing to save."""


@dataclass(frozen=True, slots=True)
class Beginning(Generic[Item]):
    """The first turns of a history, and what was made of them."""

    ids: tuple[int, ...] = ()
    items: tuple[Item, ...] = ()
    turns: tuple[ReferenceType[Turn], ...] = ()
    """They say when one of the turns goes: only then may another turn get its identity."""


class HistoryMemo(Generic[Item]):
    """The beginnings of histories whose turns all exist. Media is not kept."""

    def __init__(self) -> None:
        self._kept: dict[int, Beginning[Item]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, turns: Sequence[Turn], count: int) -> Beginning[Item]:
        """What is known of the first `count` turns, or of fewer, or of none."""
        known = self._kept.get(id(turns[0])) if count >= TURNS_MIN else None
        if known is None or len(known.ids) > count:
            return Beginning()
        return known if tuple(map(id, turns[: len(known.ids)])) == known.ids else Beginning()

    def keep(
        self, known: Beginning[Item], turns: Sequence[Turn], count: int, items: Sequence[Item]
    ) -> None:
        """Remember the items of the first `count` turns, of which some were known."""
        newer = turns[len(known.ids) : count]
        if count < TURNS_MIN or not newer or any(map(has_media, newer)):
            return
        forget = self._forget(id(turns[0]))
        self._kept[id(turns[0])] = Beginning(
            (*known.ids, *map(id, newer)),
            tuple(items),
            (*known.turns, *(ref(turn, forget) for turn in newer)),
        )

    def _forget(self, key: int) -> Callable[[object], None]:
        kept = self._kept

        def forget(_turn: object) -> None:
            kept.pop(key, None)

        return forget
