"""The conversation as input items of the Responses API.

Without stored state, reasoning goes back with its encrypted content and with the item that follows
it, and hosted items go back unchanged. With stored state, both become references (O-24).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias, assert_never

from fairlead_llm.content import (
    json_text,
    result_media,
    result_parts,
    result_text,
    system_update,
    unsupported_file_text,
)
from fairlead_llm.inline_media import inline_media
from fairlead_llm.openai_responses.native_calls import OUTPUT_TYPES
from fairlead_llm.turn_memo import TurnMemo
from fairlead_schema.provider.request import (
    AssistantTurn,
    MediaPart,
    ModelRequest,
    ReasoningPart,
    SystemTurn,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)

Item: TypeAlias = dict[str, Any]
Part: TypeAlias = TextPart | ReasoningPart | ToolCallPart | ToolResultPart


def build_items(request: ModelRequest, *, stored: bool, native_system: bool) -> list[Item]:
    """The system text, then every turn in order. Raises UnsendableRequest."""
    items: list[Item] = []
    if request.system:
        items.append({"role": "system", "content": "\n".join(request.system)})
    native = _native_calls(request.turns)
    for turn in request.turns:
        match turn:
            case UserTurn():
                items.append(_user_item(turn))
            case SystemTurn() if native_system:
                items.append({"role": "system", "content": turn.text})
            case SystemTurn():
                _add_update(items, system_update(turn.text))
            case AssistantTurn():
                items += (_stored_items if stored else _whole_items)(turn)
            case ToolTurn() if turn.result.call_id not in native:
                items.append(_function_output(turn))
            case ToolTurn():
                items.append(_call_output(turn.result, native[turn.result.call_id]))
            case _:
                assert_never(turn)
    return items


def _add_update(items: list[Item], text: str) -> None:
    """Join a directly preceding user message, else add a new one (O-18, O-19)."""
    part = _input_content(TextPart(text))
    if not items or items[-1].get("role") != "user":
        items.append({"role": "user", "content": [part]})
        return
    items[-1] = {"role": "user", "content": [*items[-1]["content"], part]}


def _native_calls(turns: Sequence[Turn]) -> dict[str, Item]:
    """The original items of calls other than function calls, by call id."""
    found: dict[str, Item] = {}
    for turn in turns:
        if isinstance(turn, AssistantTurn) and (native := _native_calls_of(turn)):
            found |= native
    return found


@TurnMemo
def _native_calls_of(turn: AssistantTurn) -> dict[str, Item]:
    return {
        part.call_id: item
        for part in turn.content
        if isinstance(part, ToolCallPart) and (item := _native_item(part)) is not None
    }


@TurnMemo
def _user_item(turn: UserTurn) -> Item:
    return {"role": "user", "content": [_input_content(part) for part in turn.content]}


@TurnMemo
def _stored_items(turn: AssistantTurn) -> list[Item]:
    return _assistant_items(turn, stored=True)


@TurnMemo
def _whole_items(turn: AssistantTurn) -> list[Item]:
    return _assistant_items(turn, stored=False)


@TurnMemo
def _function_output(turn: ToolTurn) -> Item:
    return _call_output(turn.result, None)


def _native_item(part: ToolCallPart) -> Item | None:
    """The original item of a call that is no function call."""
    item = (part.metadata or {}).get("item")
    return item if isinstance(item, dict) and "type" in item else None


def _assistant_items(turn: AssistantTurn, *, stored: bool) -> list[Item]:
    flagged_items: list[tuple[Item, bool]] = []
    results = {part.call_id: part for part in turn.content if isinstance(part, ToolResultPart)}
    for _, group in groupby(enumerate(turn.content), lambda at: _item_key(*at)):
        first, *more = [part for _, part in group]
        items: list[Item] = []
        match first:
            case TextPart():
                texts = [first, *(part for part in more if isinstance(part, TextPart))]
                items = [_message_item(texts, stored=stored)]
            case ReasoningPart():
                items = _reasoning_items([first, *_only_reasoning(more)], stored=stored)
            case ToolCallPart(executed=True):
                items = _hosted_items(first, results.get(first.call_id), stored=stored)
            case ToolCallPart():
                items = [_native_item(first) or _function_call(first, stored=stored)]
            case ToolResultPart():
                pass
            case _:
                assert_never(first)
        flagged_items += [(item, isinstance(first, ReasoningPart)) for item in items]
    while flagged_items and flagged_items[-1][1]:
        # The API refuses reasoning without the item that follows it.
        flagged_items.pop()
    return [item for item, _ in flagged_items]


def _item_key(at: int, part: Part) -> object:
    """The grouping key. Neighbours with the same item id form one item; other parts stand alone."""
    joins = isinstance(part, ReasoningPart | TextPart)
    item = (part.metadata or {}).get("item_id") if joins else None
    return at if item is None else (type(part), item)


def _message_item(parts: Sequence[TextPart], *, stored: bool) -> Item:
    """One message, with the phase that the model gave it, because the API wants the phase back."""
    message: Item = {"role": "assistant", "content": [_text_content(part) for part in parts]}
    phase = (parts[0].metadata or {}).get("phase")
    if phase is not None:
        message["phase"] = phase
    stored_id = _stored_id(parts[0], stored=stored)
    if not stored_id:
        return message
    return {"type": "message", "status": "completed"} | message | stored_id


def _text_content(part: TextPart) -> Item:
    metadata = part.metadata or {}
    if metadata.get("refusal"):
        return {"type": "refusal", "refusal": part.text}
    annotations = metadata.get("annotations")
    citations = {"annotations": annotations} if annotations else {}
    return {"type": "output_text", "text": part.text} | citations


def _stored_id(part: TextPart | ToolCallPart, *, stored: bool) -> Item:
    """The id of a stored item, because stored reasoning needs the id of the item after it."""
    item_id = (part.metadata or {}).get("item_id") if stored else None
    return {"id": item_id} if item_id else {}


def _only_reasoning(parts: Sequence[Part]) -> Iterator[ReasoningPart]:
    return (part for part in parts if isinstance(part, ReasoningPart))


def _reasoning_items(parts: Sequence[ReasoningPart], *, stored: bool) -> list[Item]:
    metadata = [part.metadata or {} for part in parts]
    if stored:
        return _reference_items(metadata[0].get("item_id"))
    encrypted = [
        fields["encrypted_content"] for fields in metadata if fields.get("encrypted_content")
    ]
    if not encrypted:
        return []
    raw = any(fields.get("raw") for fields in metadata)
    texts = [part.text for part in parts if part.text]
    item: Item = {
        "type": "reasoning",
        "summary": [] if raw else [{"type": "summary_text", "text": text} for text in texts],
    }
    if raw:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in texts]
    return [item | {"encrypted_content": encrypted[-1]}]


def _hosted_items(call: ToolCallPart, result: ToolResultPart | None, *, stored: bool) -> list[Item]:
    """A hosted call, by reference or unchanged. A call of another provider becomes ordinary."""
    if result is None:
        return []
    item_id = (result.metadata or {}).get("item_id")
    if item_id is None:
        return [_function_call(call), _call_output(result, None)]
    whole = result.value
    if not isinstance(whole, dict) or "type" not in whole:
        return []
    if stored:
        return _reference_items(item_id)
    before = _native_item(call)
    return [whole] if before is None or before == whole else [before, whole]


def _reference_items(item_id: object) -> list[Item]:
    return [{"type": "item_reference", "id": item_id}] if item_id else []


def _function_call(part: ToolCallPart, *, stored: bool = False) -> Item:
    call: Item = {
        "type": "function_call",
        "call_id": part.call_id,
        "name": part.name,
        "arguments": json_text(part.input),
    }
    return call | _stored_id(part, stored=stored)


def _call_output(result: ToolResultPart, native: Item | None) -> Item:
    """The output of a call: a list if it has media, else text. `native` is the item of the call.

    The call id of that item counts, because a provider may change it until the item is done.
    """
    kind = "function_call" if native is None else native["type"]
    call_id = (native or {}).get("call_id") or result.call_id
    fields: Item = {"type": OUTPUT_TYPES.get(kind, f"{kind}_output"), "call_id": call_id}
    text = result_text(result)
    status = {"status": "failed" if result.kind == "error" else "completed"}
    match kind:
        case "shell_call":
            outcome = {"type": "exit", "exit_code": 1 if result.kind == "error" else 0}
            return fields | {"output": [{"stdout": text, "stderr": "", "outcome": outcome}]}
        case "apply_patch_call":
            return fields | status | {"output": text}
        case "tool_search_call":
            found = result.value if isinstance(result.value, list) else []
            return fields | status | {"execution": "client", "tools": found}
        case _ if result_media(result):
            return fields | {"output": [_input_content(part) for part in result_parts(result)]}
        case _:
            return fields | {"output": text}


def _input_content(part: TextPart | MediaPart) -> Item:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    media = inline_media(part)
    match media.mime.split("/"):
        case ["image", _]:
            return {"type": "input_image", "image_url": media.uri}
        case ["text", _] | ["application", "json"]:
            return {"type": "input_text", "text": media.decoded.decode(errors="replace")}
        case ["application", "pdf"]:
            name = part.name or "document.pdf"
            return {"type": "input_file", "filename": name, "file_data": media.uri}
        case _:
            return _input_content(TextPart(unsupported_file_text(part, "the Responses API")))
