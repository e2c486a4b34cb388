"""One content block of a streaming message: how it begins, grows and ends."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from fairlead_llm import arguments
from fairlead_llm.anthropic_messages.native import is_result, noted, silent
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
Kind: TypeAlias = Literal["text", "thinking", "call", "opaque"]

_KINDS: Mapping[str, Kind] = {
    "text": "text",
    "thinking": "thinking",
    "tool_use": "call",
    "server_tool_use": "call",
    "mcp_tool_use": "call",
}
_UNFINISHED = "The provider ended its answer before this call was complete"


@dataclass(frozen=True, slots=True)
class Open:
    """A block that is streaming. `whole` is the block as it began, with what deltas made of it."""

    index: int
    kind: Kind
    id: str
    whole: dict[str, Any]
    text: str = ""

    @property
    def type(self) -> str:
        return str(self.whole.get("type"))


def begun(index: int, block: dict[str, Any], *, fallback: str) -> tuple[Open, Events]:
    """A new block; `fallback` names it where the provider does not.

    Reasoning begins here, not with its first words: it may have none, and still be signed.
    """
    kind = _KINDS.get(str(block.get("type")), "opaque")
    match kind:
        case "text":
            id_ = f"text-{fallback}"
            said = str(block.get("text") or "")
            chunks = (TextChunk(id_, said),) if said else ()
            return Open(index, kind, id_, block), (TextStart(id_), *chunks)
        case "thinking":
            id_ = f"reasoning-{fallback}"
            thought = str(block.get("thinking") or "")
            thoughts = (ReasoningChunk(id_, thought),) if thought else ()
            return Open(index, kind, id_, block), (ReasoningStart(id_), *thoughts)
        case "call":
            id_ = str(block.get("id") or f"call-{fallback}")
            return Open(index, kind, id_, block), (ToolInputStart(id_, _name(block)),)
        case "opaque":
            return Open(index, kind, f"reasoning-{fallback}", block), ()


def grown(block: Open, delta: dict[str, Any]) -> tuple[Open, Events]:
    """The block after one delta. A delta of an unknown type is merged into what is told again."""
    match delta.get("type"):
        case "text_delta" if block.kind == "text":
            return block, (TextChunk(block.id, _text(delta["text"])),)
        case "thinking_delta" if block.kind == "thinking":
            thought = _text(delta["thinking"])
            return block, (ReasoningChunk(block.id, thought),) if thought else ()
        case "input_json_delta" if block.kind == "call":
            text = _text(delta["partial_json"])
            if not text:
                return block, ()
            return replace(block, text=block.text + text), (ToolInputChunk(block.id, text),)
        case "citations_delta":
            cited = [*(block.whole.get("citations") or ()), delta["citation"]]
            return replace(block, whole=block.whole | {"citations": cited}), ()
        case _:
            fields = {name: value for name, value in delta.items() if name != "type"}
            return replace(block, whole=block.whole | fields), ()


def ended(block: Open, awaited: frozenset[str], *, complete: bool = True) -> Events:
    """The end of a block; `awaited` are the hosted calls of this answer that have no result yet."""
    match block.kind:
        case "text":
            cited = block.whole.get("citations")
            told = silent(f"{block.id}-citations", citations=cited) if cited else ()
            return (TextEnd(block.id), *told)
        case "thinking":
            signature = block.whole.get("signature") or ""
            return (ReasoningEnd(block.id, noted(signature=signature)),)
        case "call":
            return ToolInputEnd(block.id), _call(block, complete=complete)
        case "opaque":
            return _told(block, awaited)


def _call(block: Open, *, complete: bool) -> ToolCall:
    """Arguments come as deltas, or whole at the beginning when the provider made the call itself."""
    if block.text:
        value, invalid = arguments.parsed(block.text)
    else:
        value = block.whole.get("input") or {}
        invalid = arguments.fault(value)
    name = _name(block.whole)
    if not name:
        invalid = "The provider named no tool"
    return ToolCall(
        block.id,
        name,
        value,
        executed=block.type != "tool_use",
        metadata=_call_metadata(block),
        invalid=invalid if complete else _UNFINISHED,
    )


def _call_metadata(block: Open) -> dict[str, Any] | None:
    """What a call carries besides its arguments; a direct caller is what the wire assumes anyway."""
    rest = {
        name: value
        for name, value in block.whole.items()
        if name not in {"id", "name", "input"} and value is not None
    }
    caller = rest.get("caller")
    if isinstance(caller, dict) and caller.get("type") == "direct":
        del rest["caller"]
    return None if rest == {"type": "tool_use"} else noted(**rest)


def _told(block: Open, awaited: frozenset[str]) -> Events:
    """A block without deltas: a hosted result, redacted thinking, or one to be told again as it is.

    A result whose call was made before a pause belongs to no call of this answer.
    """
    if block.type == "redacted_thinking":
        return silent(block.id, redactedData=block.whole.get("data"))
    id_ = block.whole.get("tool_use_id")
    if is_result(block.type) and id_ in awaited:
        return (_result(str(id_), block.whole),)
    return silent(block.id, block=block.whole)


def _result(id_: str, whole: dict[str, Any]) -> ToolResult:
    """The content is the value; a failed one is noted too, because failures keep only words."""
    content = whole.get("content")
    kind = content.get("type") if isinstance(content, dict) else None
    error = whole.get("is_error") is True or str(kind).endswith("_tool_result_error")
    dropped = {"tool_use_id"} if error else {"tool_use_id", "content"}
    rest = {name: value for name, value in whole.items() if name not in dropped}
    return ToolResult(id_, content, error=error, metadata=noted(**rest))


def _name(block: dict[str, Any]) -> str:
    return str(block.get("name") or "")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text expected")
    return value
