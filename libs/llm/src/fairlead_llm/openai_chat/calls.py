"""Tool calls of Chat Completions: fragments with an index, of which vendors leave out parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from fairlead_llm.calls import arguments
from fairlead_llm.calls.call_ids import free_id
from fairlead_schema.provider.events import (
    ProviderEvent,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
)


@dataclass(frozen=True, slots=True)
class StreamingCall:
    """A call whose arguments are still streaming. `vendor_id` is the id that the vendor sent."""

    index: int
    id: str
    name: str
    vendor_id: str | None = None
    text: str = ""


def add_fragments(
    calls: tuple[StreamingCall, ...], fragments: Sequence[Any], *, mint_id: Callable[[int], str]
) -> tuple[tuple[StreamingCall, ...], tuple[ProviderEvent, ...]]:
    """Add fragments to the calls. A call without a vendor's id gets a minted id."""
    events: list[ProviderEvent] = []
    for position, fragment in enumerate(fragments):
        if not isinstance(fragment, dict):
            continue
        function, index = _object_or_empty(fragment.get("function")), fragment.get("index")
        vendor_id = str(fragment["id"]) if fragment.get("id") else None
        index = index if isinstance(index, int) else position
        at = _find(calls, index, vendor_id)
        if at is None:
            # Calls that stream side by side may have one id. Their index tells them apart.
            id_ = free_id(vendor_id or mint_id(len(calls)), {call.id for call in calls})
            calls = (*calls, StreamingCall(index, id_, str(function.get("name") or ""), vendor_id))
            events.append(ToolInputStart(calls[-1].id, calls[-1].name))
            at = len(calls) - 1
        if text := _arguments_text(function.get("arguments")):
            call = replace(calls[at], text=calls[at].text + text)
            calls = (*calls[:at], call, *calls[at + 1 :])
            events.append(ToolInputChunk(call.id, text))
    return calls, tuple(events)


def end_call(call: StreamingCall) -> tuple[ProviderEvent, ...]:
    """The end of a call's input, and the call. Empty text means no arguments."""
    value, fault = arguments.parse_arguments(call.text)
    invalid = fault if call.name else "The provider named no tool"
    return ToolInputEnd(call.id), ToolCall(call.id, call.name, value, invalid=invalid)


def _find(calls: tuple[StreamingCall, ...], index: object, vendor_id: str | None) -> int | None:
    """The newest call at this index. A fragment with another id starts a new call."""
    for at in range(len(calls) - 1, -1, -1):
        call = calls[at]
        if call.index == index:
            return at if vendor_id is None or call.vendor_id in {None, vendor_id} else None
    return None


def _object_or_empty(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _arguments_text(value: object) -> str:
    """The arguments as text. Some vendors send a JSON value instead."""
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value).decode()
