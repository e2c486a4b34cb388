"""Remembers what a protocol makes of a turn, so that a history that grows is translated once.

Turns never change, and neither does what is made of them: a builder of requests copies what it joins.
"""

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ReferenceType, ref

from fairlead_llm.content import result_media
from fairlead_schema.provider.request import (
    AssistantTurn,
    MediaPart,
    SystemTurn,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)

AnyTurn = TypeVar("AnyTurn", UserTurn, AssistantTurn, ToolTurn, SystemTurn)
Translated = TypeVar("Translated")


class TurnMemo(Generic[AnyTurn, Translated]):
    """A function of a turn that keeps its results as long as the turns. Media is not kept twice."""

    def __init__(self, translate: Callable[[AnyTurn], Translated]) -> None:
        self._translate: Callable[[AnyTurn], Translated] = translate
        self._kept: dict[int, tuple[ReferenceType[AnyTurn], Translated]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __call__(self, turn: AnyTurn) -> Translated:
        # By identity: to compare or hash a turn costs as much as to translate it.
        key = id(turn)
        kept = self._kept.get(key)
        if kept is not None:
            return kept[1]
        translated = self._translate(turn)
        if not has_media(turn):
            forget = self._kept.pop
            self._kept[key] = (ref(turn, lambda _: forget(key, None)), translated)
        return translated


def has_media(turn: Turn) -> bool:
    """Whether a turn carries files."""
    match turn:
        case UserTurn():
            return any(isinstance(part, MediaPart) for part in turn.content)
        case ToolTurn():
            return bool(result_media(turn.result))
        case AssistantTurn():
            results = (part for part in turn.content if isinstance(part, ToolResultPart))
            return any(map(result_media, results))
        case SystemTurn():
            return False
