"""Tool calls on Chat: fragments keyed by index, tolerant of what vendors leave out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from fairlead_llm import arguments
from fairlead_schema.provider.events import (
    ProviderEvent,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose arguments are still streaming; `given` is the id the vendor sent, if any."""

    index: int
    id: str
    name: str
    given: str | None = None
    text: str = ""


def extended(
    calls: tuple[Call, ...], fragments: Sequence[Any], *, minted: Callable[[int], str]
) -> tuple[tuple[Call, ...], tuple[ProviderEvent, ...]]:
    """The calls with these fragments added; a call without an id gets a minted one."""
    events: list[ProviderEvent] = []
    for position, fragment in enumerate(fragments):
        if not isinstance(fragment, dict):
            continue
        function, index = _table(fragment.get("function")), fragment.get("index")
        given = str(fragment["id"]) if fragment.get("id") else None
        index = index if isinstance(index, int) else position
        at = _find(calls, index, given)
        if at is None:
            id_ = given or minted(len(calls))
            calls = (*calls, Call(index, id_, str(function.get("name") or ""), given))
            events.append(ToolInputStart(calls[-1].id, calls[-1].name))
            at = len(calls) - 1
        if text := _text(function.get("arguments")):
            call = replace(calls[at], text=calls[at].text + text)
            calls = (*calls[:at], call, *calls[at + 1 :])
            events.append(ToolInputChunk(call.id, text))
    return calls, tuple(events)


def finalised(call: Call) -> tuple[ProviderEvent, ...]:
    """The end of a call's input and the call itself; no text means no arguments."""
    value, unusable = arguments.parsed(call.text)
    invalid = unusable if call.name else "The provider named no tool"
    return ToolInputEnd(call.id), ToolCall(call.id, call.name, value, invalid=invalid)


def _find(calls: tuple[Call, ...], index: object, given: str | None) -> int | None:
    """The newest call at that index, unless the fragment names another id: then it is a new call."""
    for at in range(len(calls) - 1, -1, -1):
        call = calls[at]
        if call.index == index:
            return at if given is None or call.given in {None, given} else None
    return None


def _table(given: object) -> dict[str, Any]:
    return given if isinstance(given, dict) else {}


def _text(given: object) -> str:
    """Some vendors send the arguments as a value instead of its text."""
    if given is None or isinstance(given, str):
        return given or ""
    return orjson.dumps(given).decode()
