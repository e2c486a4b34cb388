"""Output items: the start, deltas and end of each kind.

Items have their output index as key, because some vendors change an item's id at every event. The
final form of an item decides its arguments, its encrypted content and its hosted result.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fairlead_llm.calls.arguments import parse_arguments
from fairlead_llm.openai_responses.native_calls import end_native_call
from fairlead_llm.openai_responses.open_item import Events, Json, OpenItem, text_or_none
from fairlead_schema.provider.events import (
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
)


def begin(item: Json, block_number: str, fallback_id: str) -> tuple[OpenItem, Events]:
    """Open an item. A call without an id gets `fallback_id`.

    Reasoning opens its block at once, because it may have encrypted content and no text.
    """
    kind, item_id = str(item.get("type")), text_or_none(item.get("id"))
    if kind == "message":
        return OpenItem(kind, "", item_id=item_id, phase=text_or_none(item.get("phase"))), ()
    if kind == "reasoning":
        block = f"reasoning-{block_number}"
        return OpenItem(kind, block, item_id=item_id, block_open=True), (ReasoningStart(block),)
    name = str(item.get("name") or kind.removesuffix("_call"))
    call_id = text_or_none(item.get("call_id")) or item_id or fallback_id
    return OpenItem(kind, call_id, name, item_id), (ToolInputStart(call_id, name),)


def add_text(
    open_item: OpenItem, part: int, text: str, block_number: str
) -> tuple[OpenItem, Events]:
    """Add text to a message. Each part of the message is a block of its own."""
    if open_item.shows_part(part):
        return open_item, (TextChunk(open_item.id, text),)
    end_events: Events = (
        (TextEnd(open_item.id, _text_metadata(open_item, None)),) if open_item.block_open else ()
    )
    block = f"text-{block_number}"
    after = replace(open_item, id=block, part=part, block_open=True, has_text=True)
    return after, (*end_events, TextStart(block), TextChunk(block, text))


def end_part(open_item: OpenItem, part: Json) -> tuple[OpenItem, Events]:
    """End the block of a message's part, whose final form holds the citations."""
    if open_item.type != "message" or not open_item.block_open:
        return open_item, ()
    return replace(open_item, block_open=False), (
        TextEnd(open_item.id, _text_metadata(open_item, part)),
    )


def add_reasoning(
    open_item: OpenItem, part: int, text: str, block_number: str, *, raw: bool = False
) -> tuple[OpenItem, Events]:
    """Add text to reasoning. Each summary part is a block of its own."""
    if open_item.part == part and open_item.has_text:
        return open_item, (ReasoningChunk(open_item.id, text),)
    if open_item.part == part or not open_item.has_text:
        after = replace(open_item, part=part, has_text=True, raw=raw)
        return after, (ReasoningChunk(open_item.id, text),)
    block = f"reasoning-{block_number}"
    end_event = ReasoningEnd(open_item.id, _reasoning_metadata(open_item, None))
    after = replace(open_item, id=block, part=part)
    return after, (end_event, ReasoningStart(block), ReasoningChunk(block, text))


def add_input(open_item: OpenItem, text: str) -> tuple[OpenItem, Events]:
    """Add a fragment to the input of a call."""
    return replace(open_item, text=open_item.text + text), (ToolInputChunk(open_item.id, text),)


def end(open_item: OpenItem, item: Json | None, block_number: str) -> Events:
    """Close an item. `item` is its final form, or None if the stream ended before."""
    match open_item.type:
        case "message":
            return _end_message(open_item, item, block_number)
        case "reasoning":
            return _end_reasoning(open_item, item, block_number)
        case "function_call":
            return _end_function_call(open_item, item)
        case _:
            return end_native_call(open_item, item)


def _end_message(open_item: OpenItem, item: Json | None, block_number: str) -> Events:
    """End a message. A message without deltas takes its text from its final form."""
    content = (item or {}).get("content")
    parts = (
        [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    )
    open_item = replace(open_item, phase=text_or_none((item or {}).get("phase")) or open_item.phase)
    if open_item.has_text:
        whole = parts[open_item.part] if open_item.part < len(parts) else None
        return (
            (TextEnd(open_item.id, _text_metadata(open_item, whole)),)
            if open_item.block_open
            else ()
        )
    events: Events = ()
    for at, text in _texts(parts, "text", "refusal"):
        open_item, text_events = add_text(open_item, at, text, f"{block_number}-{at}")
        open_item, end_events = end_part(open_item, parts[at])
        events += (*text_events, *end_events)
    return events


def _text_metadata(open_item: OpenItem, part: Json | None) -> dict[str, Any] | None:
    """The fields of a text that must go back: its message, its phase, its citations."""
    fields = {
        "item_id": open_item.item_id,
        "phase": open_item.phase,
        "annotations": (part or {}).get("annotations") or None,
        "refusal": (part or {}).get("type") == "refusal" or None,
    }
    return {name: value for name, value in fields.items() if value is not None} or None


def _end_reasoning(open_item: OpenItem, item: Json | None, block_number: str) -> Events:
    events: Events = ()
    if not open_item.has_text and item is not None:
        raw = not item.get("summary")
        for part, text in _texts(item.get("content" if raw else "summary"), "text"):
            number = f"{block_number}-{part}"
            open_item, text_events = add_reasoning(open_item, part, text, number, raw=raw)
            events += text_events
    return (*events, ReasoningEnd(open_item.id, _reasoning_metadata(open_item, item)))


def _reasoning_metadata(open_item: OpenItem, item: Json | None) -> dict[str, Any] | None:
    """The fields of reasoning that must go back. Only the last block has encrypted content."""
    fields = {
        "item_id": open_item.item_id,
        "encrypted_content": text_or_none((item or {}).get("encrypted_content")),
        "raw": open_item.raw or None,
    }
    return {name: value for name, value in fields.items() if value is not None} or None


def _end_function_call(open_item: OpenItem, item: Json | None) -> Events:
    text = text_or_none((item or {}).get("arguments")) or open_item.text
    value, fault = parse_arguments(text)
    invalid = fault if open_item.name else "The provider named no tool"
    chunks: Events = (ToolInputChunk(open_item.id, text),) if text and not open_item.text else ()
    metadata = None if open_item.item_id is None else {"item_id": open_item.item_id}
    call = ToolCall(open_item.id, open_item.name, value, metadata=metadata, invalid=invalid)
    return (*chunks, ToolInputEnd(open_item.id), call)


def _texts(parts: object, *names: str) -> Iterator[tuple[int, str]]:
    for at, part in enumerate(parts if isinstance(parts, list) else ()):
        fields = part if isinstance(part, dict) else {}
        text = next((fields[name] for name in names if isinstance(fields.get(name), str)), "")
        if text:
            yield at, text
