"""Canonical parts as content blocks of the Messages API."""

import re
from dataclasses import dataclass, field
from typing import assert_never

from fairlead_llm.anthropic_messages.metadata import (
    BLOCKS_BETWEEN,
    Block,
    is_result,
    read_metadata,
)
from fairlead_llm.calls.arguments import as_object
from fairlead_llm.content import result_parts, result_text, unsupported_file_text
from fairlead_llm.inline_media import inline_media
from fairlead_schema.provider.request import (
    AssistantTurn,
    MediaPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
# The API refuses these characters in ids. Ids of other providers may have them, so both the call
# and its result replace them.
_INVALID_ID_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(slots=True)
class AssistantBlocks:
    """The blocks of an assistant turn, and the results that must go back in a user message."""

    blocks: list[Block] = field(default_factory=list)
    results: list[Block] = field(default_factory=list)
    apart: dict[str, tuple[int, Block]] = field(default_factory=dict)
    """Hosted results that stood apart from their calls: how many blocks between, by call id."""

    def in_order(self) -> list[Block]:
        """All blocks, with each result as far behind its call as it stood in the answer."""
        ordered: list[Block] = []
        places: dict[int, Block] = {}
        for block in self.blocks:
            while len(ordered) in places:
                ordered.append(places.pop(len(ordered)))
            if block.get("id") in self.apart:
                between, result = self.apart[block["id"]]
                place = len(ordered) + between + 1
                while place in places:
                    place += 1
                places[place] = result
            ordered.append(block)
        return [*ordered, *(places[place] for place in sorted(places))]


def text_block(value: str) -> Block:
    return {"type": "text", "text": value}


def user_blocks(parts: tuple[TextPart | MediaPart, ...]) -> list[Block]:
    """Text and media in order. The API refuses blank text, so it is left out."""
    return [
        _media_block(part) if isinstance(part, MediaPart) else text_block(part.text)
        for part in parts
        if isinstance(part, MediaPart) or part.text.strip()
    ]


def result_block(part: ToolResultPart) -> Block:
    """The result of a local call, with its media inside."""
    block: Block = {"type": "tool_result", "tool_use_id": _wire_id(part.call_id)}
    match part.kind:
        case "content":
            return block | {"content": user_blocks(result_parts(part))}
        case "error":
            # The API refuses an error without text.
            return block | {"content": result_text(part) or "The tool failed", "is_error": True}
        case "text" | "json":
            return block | {"content": result_text(part)}


def assistant_blocks(turn: AssistantTurn) -> AssistantBlocks:
    """Blocks of this protocol go back unchanged and in order. Parts of other providers are adapted.

    Reasoning without metadata of this protocol is left out: the API refuses unsigned thinking.
    """
    lowered = AssistantBlocks()
    with_result = {part.call_id for part in turn.content if isinstance(part, ToolResultPart)}
    hosted: set[str] = set()
    for part in turn.content:
        match part:
            case TextPart():
                lowered.blocks += user_blocks((part,))
            case ReasoningPart():
                _add_reasoning(lowered.blocks, part)
            case ToolCallPart(executed=True) if read_metadata(part.metadata) is not None:
                hosted.add(part.call_id)
                lowered.blocks.append(_call_block(part))
            case ToolCallPart():
                if not part.executed or part.call_id in with_result:
                    lowered.blocks.append(_call_block(part))
            case ToolResultPart():
                _add_result(lowered, part, hosted=part.call_id in hosted)
            case _:
                assert_never(part)
    return AssistantBlocks(_order_blocks(lowered.in_order()), lowered.results)


def _add_reasoning(blocks: list[Block], part: ReasoningPart) -> None:
    match read_metadata(part.metadata):
        case {"redactedData": data}:
            blocks.append({"type": "redacted_thinking", "data": data})
        case {"signature": signature}:
            blocks.append({"type": "thinking", "thinking": part.text, "signature": signature})
        case {"block": dict() as block}:
            blocks.append(block)
        case {"citations": citations} if blocks and blocks[-1]["type"] == "text":
            blocks[-1] = blocks[-1] | {"citations": citations}
        case _:
            return


def _call_block(part: ToolCallPart) -> Block:
    """A call, with the other fields of its original block."""
    fields = read_metadata(part.metadata) or {}
    block = {"type": "tool_use", "id": _wire_id(part.call_id), "name": part.name}
    return block | {"input": as_object(part.input)} | fields


def _add_result(lowered: AssistantBlocks, part: ToolResultPart, *, hosted: bool) -> None:
    """A hosted result stays in its place. A result of another provider becomes an ordinary result.

    A paused hosted call has no native result yet: the result follows in a later turn.
    """
    fields = read_metadata(part.metadata) or {}
    if is_result(fields.get("type")):
        block = {"type": fields["type"], "tool_use_id": part.call_id, "content": part.value}
        block |= {name: value for name, value in fields.items() if name != BLOCKS_BETWEEN}
        if fields.get(BLOCKS_BETWEEN):
            lowered.apart[_wire_id(part.call_id)] = fields[BLOCKS_BETWEEN], block
        else:
            lowered.blocks.append(block)
    elif not hosted:
        lowered.results.append(result_block(part))


def _order_blocks(blocks: list[Block]) -> list[Block]:
    """Put local calls last, because the API wants their results directly after them.

    A turn with thinking keeps its order, because it came from this API.
    """
    if any(str(block.get("type")).endswith("thinking") for block in blocks):
        return blocks
    return sorted(blocks, key=lambda block: block.get("type") == "tool_use")


def _media_block(part: MediaPart) -> Block:
    media = inline_media(part)
    if media.mime in _IMAGES:
        return {"type": "image", "source": _base64_source(media.mime, media.encoded)}
    if media.mime == "application/pdf":
        source = _base64_source(media.mime, media.encoded)
    elif media.mime.startswith("text/") or media.mime == "application/json":
        content = media.decoded.decode(errors="replace")
        source = {"type": "text", "media_type": "text/plain", "data": content}
    else:
        return text_block(unsupported_file_text(part, "the Messages API"))
    title = {"title": part.name} if part.name else {}
    return {"type": "document", "source": source} | title


def _base64_source(mime: str, encoded: str) -> Block:
    return {"type": "base64", "media_type": mime, "data": encoded}


def _wire_id(call_id: str) -> str:
    return _INVALID_ID_CHARACTER.sub("_", call_id)
