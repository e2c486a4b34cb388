"""Canonical parts as content blocks of the Messages API."""

import re
from dataclasses import dataclass, field
from typing import assert_never

from fairlead_llm.anthropic_messages import native
from fairlead_llm.anthropic_messages.native import Block
from fairlead_llm.arguments import as_object
from fairlead_llm.content import result_parts, result_text, untaken
from fairlead_llm.media import inline
from fairlead_schema.provider.request import (
    AssistantTurn,
    MediaPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
# Ids of other providers may hold what the wire refuses; a call and its result change alike.
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(slots=True)
class Said:
    """An assistant turn: its own blocks, and results that must go back as a user's."""

    blocks: list[Block] = field(default_factory=list)
    results: list[Block] = field(default_factory=list)


def text(value: str) -> Block:
    return {"type": "text", "text": value}


def user(parts: tuple[TextPart | MediaPart, ...]) -> list[Block]:
    """Text and media in order; the wire refuses text without words."""
    return [
        _media(part) if isinstance(part, MediaPart) else text(part.text)
        for part in parts
        if isinstance(part, MediaPart) or part.text.strip()
    ]


def result(part: ToolResultPart) -> Block:
    """A local call's result, with its media inside."""
    block: Block = {"type": "tool_result", "tool_use_id": _id(part.call_id)}
    match part.kind:
        case "content":
            return block | {"content": user(result_parts(part))}
        case "error":
            # An error without words is refused.
            return block | {"content": result_text(part) or "The tool failed", "is_error": True}
        case "text" | "json":
            return block | {"content": result_text(part)}


def assistant(turn: AssistantTurn) -> Said:
    """Blocks of our own protocol come back byte for byte, in order; what came from others is adapted.

    Reasoning without a note of ours is left out: unsigned thinking is refused.
    """
    said = Said()
    answered = {part.call_id for part in turn.content if isinstance(part, ToolResultPart)}
    hosted: set[str] = set()
    for part in turn.content:
        match part:
            case TextPart():
                said.blocks += user((part,))
            case ReasoningPart():
                _add_reasoning(said.blocks, part)
            case ToolCallPart(executed=True) if native.of(part.metadata) is not None:
                hosted.add(part.call_id)
                said.blocks.append(_call(part))
            case ToolCallPart():
                said.blocks += (
                    [_call(part)] if not part.executed or part.call_id in answered else []
                )
            case ToolResultPart():
                _add_result(said, part, hosted=part.call_id in hosted)
            case _:
                assert_never(part)
    return Said(_ordered(said.blocks), said.results)


def _add_reasoning(blocks: list[Block], part: ReasoningPart) -> None:
    match native.of(part.metadata):
        case {"redactedData": data}:
            blocks.append({"type": "redacted_thinking", "data": data})
        case {"signature": signature}:
            blocks.append({"type": "thinking", "thinking": part.text, "signature": signature})
        case {"block": dict() as block}:
            blocks.append(block)
        case {"citations": cited} if blocks and blocks[-1]["type"] == "text":
            blocks[-1] = blocks[-1] | {"citations": cited}
        case _:
            return


def _call(part: ToolCallPart) -> Block:
    """A call; what its block carried besides its arguments is told again."""
    known = native.of(part.metadata) or {}
    block = {"type": "tool_use", "id": _id(part.call_id), "name": part.name}
    return block | {"input": as_object(part.input)} | known


def _add_result(said: Said, part: ToolResultPart, *, hosted: bool) -> None:
    """A hosted result stays in its place. One of another provider goes back as an ordinary result.

    A hosted call whose result is not known yet was paused: the result follows in a later turn.
    """
    known = native.of(part.metadata) or {}
    if native.is_result(known.get("type")):
        block = {"type": known["type"], "tool_use_id": part.call_id, "content": part.value}
        said.blocks.append(block | known)
    elif not hosted:
        said.results.append(result(part))


def _ordered(blocks: list[Block]) -> list[Block]:
    """Local calls last: the wire wants their results right after them.

    A turn that thought is in its provider's own order, and stays so.
    """
    if any(str(block.get("type")).endswith("thinking") for block in blocks):
        return blocks
    return sorted(blocks, key=lambda block: block.get("type") == "tool_use")


def _media(part: MediaPart) -> Block:
    media = inline(part)
    if media.mime in _IMAGES:
        return {"type": "image", "source": _base64(media.mime, media.encoded)}
    if media.mime == "application/pdf":
        source = _base64(media.mime, media.encoded)
    elif media.mime.startswith("text/") or media.mime == "application/json":
        words = media.decoded.decode(errors="replace")
        source = {"type": "text", "media_type": "text/plain", "data": words}
    else:
        return text(untaken(part, "the Messages API"))
    title = {"title": part.name} if part.name else {}
    return {"type": "document", "source": source} | title


def _base64(mime: str, encoded: str) -> Block:
    return {"type": "base64", "media_type": mime, "data": encoded}


def _id(call_id: str) -> str:
    return _FOREIGN.sub("_", call_id)
