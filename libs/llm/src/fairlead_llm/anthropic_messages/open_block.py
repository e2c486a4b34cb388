"""One content block of a streaming message: its start, its deltas and its end."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from fairlead_llm.anthropic_messages.metadata import (
    BLOCKS_BETWEEN,
    hidden_reasoning,
    is_result,
    native_metadata,
)
from fairlead_llm.calls import arguments
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
class OpenBlock:
    """A block that is streaming. `raw` is the block of the start frame, merged with its deltas."""

    index: int
    kind: Kind
    id: str
    raw: dict[str, Any]
    text: str = ""

    @property
    def type(self) -> str:
        return str(self.raw.get("type"))


def begin(index: int, block: dict[str, Any], *, fallback: str) -> tuple[OpenBlock, Events]:
    """Begin a block. `fallback` completes its id if the provider sends none.

    Reasoning begins here and not with its first text, because it may be signed without any text.
    """
    kind = _KINDS.get(str(block.get("type")), "opaque")
    match kind:
        case "text":
            id_ = f"text-{fallback}"
            text = str(block.get("text") or "")
            chunks = (TextChunk(id_, text),) if text else ()
            return OpenBlock(index, kind, id_, block), (TextStart(id_), *chunks)
        case "thinking":
            id_ = f"reasoning-{fallback}"
            thinking = str(block.get("thinking") or "")
            reasoning = (ReasoningChunk(id_, thinking),) if thinking else ()
            return OpenBlock(index, kind, id_, block), (ReasoningStart(id_), *reasoning)
        case "call":
            id_ = str(block.get("id") or f"call-{fallback}")
            return OpenBlock(index, kind, id_, block), (ToolInputStart(id_, _tool_name(block)),)
        case "opaque":
            return OpenBlock(index, kind, f"reasoning-{fallback}", block), ()


def apply_delta(block: OpenBlock, delta: dict[str, Any]) -> tuple[OpenBlock, Events]:
    """The block after one delta. A delta of unknown type is merged into the raw block."""
    match delta.get("type"):
        case "text_delta" if block.kind == "text":
            return block, (TextChunk(block.id, _require_text(delta["text"])),)
        case "thinking_delta" if block.kind == "thinking":
            thinking = _require_text(delta["thinking"])
            return block, (ReasoningChunk(block.id, thinking),) if thinking else ()
        case "input_json_delta" if block.kind == "call":
            text = _require_text(delta["partial_json"])
            if not text:
                return block, ()
            return replace(block, text=block.text + text), (ToolInputChunk(block.id, text),)
        case "citations_delta":
            citations = [*(block.raw.get("citations") or ()), delta["citation"]]
            return replace(block, raw=block.raw | {"citations": citations}), ()
        case _:
            fields = {name: value for name, value in delta.items() if name != "type"}
            return replace(block, raw=block.raw | fields), ()


def end(block: OpenBlock, open_hosted_calls: Mapping[str, int], *, complete: bool = True) -> Events:
    """End a block. `open_hosted_calls` are the hosted calls of this answer without a result."""
    match block.kind:
        case "text":
            citations = block.raw.get("citations")
            if not citations:
                return (TextEnd(block.id),)
            hidden = hidden_reasoning(f"{block.id}-citations", citations=citations)
            return (TextEnd(block.id), *hidden)
        case "thinking":
            signature = block.raw.get("signature") or ""
            return (ReasoningEnd(block.id, native_metadata(signature=signature)),)
        case "call":
            return ToolInputEnd(block.id), _complete_call(block, complete=complete)
        case "opaque":
            return _end_opaque(block, open_hosted_calls)


def _complete_call(block: OpenBlock, *, complete: bool) -> ToolCall:
    """A call. Its arguments come in deltas, or in the start frame for a call of the provider."""
    if block.text:
        value, invalid = arguments.parse_arguments(block.text)
    else:
        value = block.raw.get("input") or {}
        invalid = arguments.fault(value)
    name = _tool_name(block.raw)
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


def _call_metadata(block: OpenBlock) -> dict[str, Any] | None:
    """The other fields of a call. A direct caller is left out, because it is the API's default."""
    rest = {
        name: value
        for name, value in block.raw.items()
        if name not in {"id", "name", "input"} and value is not None
    }
    caller = rest.get("caller")
    if isinstance(caller, dict) and caller.get("type") == "direct":
        del rest["caller"]
    return None if rest == {"type": "tool_use"} else native_metadata(**rest)


def _end_opaque(block: OpenBlock, open_hosted_calls: Mapping[str, int]) -> Events:
    """End a hosted result, redacted thinking, or an unknown block, which goes back unchanged.

    The result of a call before a pause belongs to no call of this answer.
    """
    if block.type == "redacted_thinking":
        return hidden_reasoning(block.id, redactedData=block.raw.get("data"))
    id_ = block.raw.get("tool_use_id")
    if is_result(block.type) and id_ in open_hosted_calls:
        between = block.index - open_hosted_calls[str(id_)] - 1
        return (_hosted_result(str(id_), block.raw, between),)
    return hidden_reasoning(block.id, block=block.raw)


def _hosted_result(id_: str, raw: dict[str, Any], between: int) -> ToolResult:
    """A hosted result. An error keeps its content as metadata, because the log keeps only text.

    `between` counts the blocks since the call. A later request puts the result back in its place.
    """
    content = raw.get("content")
    kind = content.get("type") if isinstance(content, dict) else None
    error = raw.get("is_error") is True or str(kind).endswith("_tool_result_error")
    left_out = {"tool_use_id"} if error else {"tool_use_id", "content"}
    rest = {name: value for name, value in raw.items() if name not in left_out}
    if between > 0:
        rest[BLOCKS_BETWEEN] = between
    return ToolResult(id_, content, error=error, metadata=native_metadata(**rest))


def _tool_name(block: dict[str, Any]) -> str:
    return str(block.get("name") or "")


def _require_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text expected")
    return value
