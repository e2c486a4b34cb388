"""Joins the chunks that one read of the socket brought, so that they cost one message to clients."""

from collections.abc import Iterable
from itertools import groupby
from typing import Final, TypeAlias

from fairlead_schema.provider.events import (
    ProviderEvent,
    ReasoningChunk,
    TextChunk,
    ToolInputChunk,
)

JOINED_LENGTH_MAX: Final = 64 * 1024

_Chunk: TypeAlias = TextChunk | ReasoningChunk | ToolInputChunk


def join_chunks(events: Iterable[ProviderEvent]) -> tuple[ProviderEvent, ...]:
    """The events, with neighbouring chunks of the same block as one chunk of a bounded length."""
    return tuple(_join(list(run)) for _, run in groupby(events, _RunKey()))


class _RunKey:
    """The same number for neighbours that are joined."""

    def __init__(self) -> None:
        self._number = 0
        self._block: tuple[type[_Chunk], str] | None = None
        self._length = 0

    def __call__(self, event: ProviderEvent) -> int:
        if not isinstance(event, TextChunk | ReasoningChunk | ToolInputChunk):
            self._begin(None, 0)
            return self._number
        block = (type(event), event.id)
        self._length += len(event.text)
        if block != self._block or self._length > JOINED_LENGTH_MAX:
            self._begin(block, len(event.text))
        return self._number

    def _begin(self, block: tuple[type[_Chunk], str] | None, length: int) -> None:
        self._number += 1
        self._block, self._length = block, length


def _join(run: list[ProviderEvent]) -> ProviderEvent:
    first = run[0]
    if len(run) == 1 or not isinstance(first, TextChunk | ReasoningChunk | ToolInputChunk):
        return first
    texts = (chunk.text for chunk in run if isinstance(chunk, type(first)))
    return type(first)(first.id, "".join(texts))
