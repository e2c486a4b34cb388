"""Output items: how each kind opens, grows and closes.

Items are kept by their output index, because some vendors change an item's id at every event. What
an item says of itself when it is done is the truth: arguments, encrypted content, hosted results.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fairlead_llm.arguments import parsed
from fairlead_schema.provider.events import (
    ProviderEvent,
    ReasoningChunk,
    ReasoningEnd,
    ReasoningStart,
    TextChunk,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)

Events: TypeAlias = tuple[ProviderEvent, ...]
Wire: TypeAlias = dict[str, Any]

# Calls that wait for an answer of ours, besides function calls.
_ANSWERED = frozenset({"custom_tool_call", "local_shell_call", "apply_patch_call", "computer_call"})
_FAILED = frozenset({"failed", "incomplete"})


@dataclass(frozen=True, slots=True)
class Open:
    """An item that is not done. A message or reasoning shows one block at a time, its `part`."""

    type: str
    id: str
    name: str = ""
    item_id: str | None = None
    part: int = 0
    shown: bool = False
    grown: bool = False
    raw: bool = False
    text: str = ""
    phase: str | None = None

    def says(self, part: object) -> bool:
        """Whether it is a message that shows this part of it now."""
        return self.shown and self.part == part and self.type == "message"


def begin(item: Wire, fresh: str, minted: str) -> tuple[Open, Events]:
    """Open an item; `fresh` numbers its block, `minted` is the id of a call that has none.

    Reasoning is shown at once: it may say nothing and still have encrypted content to keep.
    """
    kind, item_id = str(item.get("type")), _word(item.get("id"))
    if kind == "message":
        return Open(kind, "", item_id=item_id, phase=_word(item.get("phase"))), ()
    if kind == "reasoning":
        block = f"reasoning-{fresh}"
        return Open(kind, block, item_id=item_id, shown=True), (ReasoningStart(block),)
    name = str(item.get("name") or kind.removesuffix("_call"))
    call_id = _word(item.get("call_id")) or item_id or minted
    return Open(kind, call_id, name, item_id), (ToolInputStart(call_id, name),)


def said(opened: Open, part: int, text: str, fresh: str) -> tuple[Open, Events]:
    """A message's next text; another part of it is another block."""
    if opened.says(part):
        return opened, (TextChunk(opened.id, text),)
    ended: Events = (TextEnd(opened.id, _told(opened, None)),) if opened.shown else ()
    block = f"text-{fresh}"
    after = replace(opened, id=block, part=part, shown=True, grown=True)
    return after, (*ended, TextStart(block), TextChunk(block, text))


def part_done(opened: Open, part: Wire) -> tuple[Open, Events]:
    """A message's part is whole: now it is known what its text cites."""
    if opened.type != "message" or not opened.shown:
        return opened, ()
    return replace(opened, shown=False), (TextEnd(opened.id, _told(opened, part)),)


def thought(
    opened: Open, part: int, text: str, fresh: str, *, raw: bool = False
) -> tuple[Open, Events]:
    """Reasoning's next text; another summary is another block of the same item."""
    if opened.part == part and opened.grown:
        return opened, (ReasoningChunk(opened.id, text),)
    if opened.part == part or not opened.grown:
        after = replace(opened, part=part, grown=True, raw=raw)
        return after, (ReasoningChunk(opened.id, text),)
    block = f"reasoning-{fresh}"
    ended = ReasoningEnd(opened.id, _remembered(opened, None))
    after = replace(opened, id=block, part=part)
    return after, (ended, ReasoningStart(block), ReasoningChunk(block, text))


def typed(opened: Open, text: str) -> tuple[Open, Events]:
    """A call's next fragment of input."""
    return replace(opened, text=opened.text + text), (ToolInputChunk(opened.id, text),)


def end(opened: Open, item: Wire | None, fresh: str) -> Events:
    """Close an item. Without its final form, the stream ended first: only what came is told."""
    match opened.type:
        case "message":
            return _message_end(opened, item, fresh)
        case "reasoning":
            return _reasoning_end(opened, item, fresh)
        case "function_call":
            return _function_end(opened, item)
        case _:
            return _other_end(opened, item)


def calls(opened: Open, item: Wire) -> bool:
    """Whether the item waits for an answer of ours."""
    if opened.type == "shell_call":
        place = item.get("environment")
        return not isinstance(place, dict) or place.get("type") == "local"
    if opened.type == "tool_search_call":
        return item.get("execution") == "client"
    return opened.type == "function_call" or opened.type in _ANSWERED


def _message_end(opened: Open, item: Wire | None, fresh: str) -> Events:
    """What streamed is closed; a message that never did is told whole, part by part."""
    parts = (item or {}).get("content")
    held = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    opened = replace(opened, phase=_word((item or {}).get("phase")) or opened.phase)
    if opened.grown:
        whole = held[opened.part] if opened.part < len(held) else None
        return (TextEnd(opened.id, _told(opened, whole)),) if opened.shown else ()
    events: Events = ()
    for at, text in _texts(held, "text", "refusal"):
        opened, told = said(opened, at, text, f"{fresh}-{at}")
        opened, ended = part_done(opened, held[at])
        events += (*told, *ended)
    return events


def _told(opened: Open, part: Wire | None) -> dict[str, Any] | None:
    """What a text must say when it goes back: its message, its phase, its citations."""
    kept = {
        "item_id": opened.item_id,
        "phase": opened.phase,
        "annotations": (part or {}).get("annotations") or None,
        "refusal": (part or {}).get("type") == "refusal" or None,
    }
    return {name: value for name, value in kept.items() if value is not None} or None


def _reasoning_end(opened: Open, item: Wire | None, fresh: str) -> Events:
    events: Events = ()
    if not opened.grown and item is not None:
        raw = not item.get("summary")
        for part, text in _texts(item.get("content" if raw else "summary"), "text"):
            opened, told = thought(opened, part, text, f"{fresh}-{part}", raw=raw)
            events += told
    return (*events, ReasoningEnd(opened.id, _remembered(opened, item)))


def _remembered(opened: Open, item: Wire | None) -> dict[str, Any] | None:
    """What a block must say when it goes back; only the last of an item has encrypted content."""
    kept = {
        "item_id": opened.item_id,
        "encrypted_content": _word((item or {}).get("encrypted_content")),
        "raw": opened.raw or None,
    }
    return {name: value for name, value in kept.items() if value is not None} or None


def _function_end(opened: Open, item: Wire | None) -> Events:
    given = (item or {}).get("arguments")
    text = given if isinstance(given, str) and given else opened.text
    value, fault = parsed(text)
    invalid = fault if opened.name else "The provider named no tool"
    unseen: Events = (ToolInputChunk(opened.id, text),) if text and not opened.text else ()
    metadata = None if opened.item_id is None else {"item_id": opened.item_id}
    call = ToolCall(opened.id, opened.name, value, metadata=metadata, invalid=invalid)
    return (*unseen, ToolInputEnd(opened.id), call)


def _other_end(opened: Open, item: Wire | None) -> Events:
    """A hosted call has its result in itself; one that we answer goes back as it came."""
    ended = ToolInputEnd(opened.id)
    if item is None:
        return (ended,)
    if calls(opened, item):
        metadata = {"item_id": opened.item_id, "item": item}
        return ended, ToolCall(opened.id, opened.name, _input(item), metadata=metadata)
    metadata = {"item_id": opened.item_id or opened.id}
    return (
        ended,
        ToolCall(opened.id, opened.name, _input(item), executed=True, metadata=metadata),
        ToolResult(opened.id, item, _word(item.get("status")) in _FAILED, metadata),
    )


def _input(item: Wire) -> object:
    """What was asked of a tool, under whichever name its kind of item has for it."""
    arguments = item.get("arguments")
    if isinstance(arguments, str):
        return parsed(arguments)[0]
    for name in ("action", "operation", "arguments"):
        if isinstance(item.get(name), dict):
            return item[name]
    if item.get("type") == "custom_tool_call":
        return item.get("input")
    asked = ("code", "queries", "server_label", "name")
    return {name: item[name] for name in asked if item.get(name) is not None}


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _texts(parts: object, *names: str) -> Iterator[tuple[int, str]]:
    for at, part in enumerate(parts if isinstance(parts, list) else ()):
        held = part if isinstance(part, dict) else {}
        text = next((held[name] for name in names if isinstance(held.get(name), str)), "")
        if text:
            yield at, text
