"""Gives every call of an answer an id of its own: some providers use one id for several calls."""

from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from fairlead_schema.provider.events import (
    ProviderEvent,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)

CallEvent = TypeVar(
    "CallEvent", bound=ToolInputStart | ToolInputChunk | ToolInputEnd | ToolCall | ToolResult
)


def free_id(id_: str, taken: Collection[str]) -> str:
    """The id itself, or the first numbered one that no other call of the answer has."""
    number, free = 2, id_
    while free in taken:
        free, number = f"{id_}-{number}", number + 1
    return free


class CallIds:
    """The ids of one answer. A call whose id an earlier call has gets a number behind it."""

    def __init__(self) -> None:
        self._called: set[str] = set()
        self._renamed: dict[str, str] = {}

    def separate(self, event: ProviderEvent) -> ProviderEvent:
        """The event with the id of its own call."""
        match event:
            case ToolInputStart():
                return self._begin(event)
            case ToolCall():
                return self._call(event)
            case ToolInputChunk() | ToolInputEnd() | ToolResult():
                return self._rename(event)
            case _:
                return event

    def _begin(self, event: ToolInputStart) -> ToolInputStart:
        if event.id in self._called:
            self._renamed[event.id] = free_id(event.id, self._called)
        return self._rename(event)

    def _call(self, event: ToolCall) -> ToolCall:
        # A call without streamed input is its own beginning.
        if self._renamed.get(event.id, event.id) in self._called:
            self._renamed[event.id] = free_id(event.id, self._called)
        call = self._rename(event)
        self._called.add(call.id)
        return call

    def _rename(self, event: CallEvent) -> CallEvent:
        if not self._renamed or event.id not in self._renamed:
            return event
        return replace(event, id=self._renamed[event.id])
