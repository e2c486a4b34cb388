"""The conversation as Responses input items.

Without stored state, reasoning goes back only with its encrypted content, and never without the
item that followed it; hosted items go back as they came. With it, both become references (O-24).
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
    untaken,
)
from fairlead_llm.media import inline
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


def items(request: ModelRequest, *, stored: bool, native_system: bool) -> list[Item]:
    """The system text, then every turn in order. Raises Unsendable."""
    sent: list[Item] = []
    if request.system:
        sent.append({"role": "system", "content": "\n".join(request.system)})
    kinds = _kinds(request.turns)
    for turn in request.turns:
        match turn:
            case UserTurn():
                sent.append({"role": "user", "content": [_content(part) for part in turn.content]})
            case SystemTurn() if native_system:
                sent.append({"role": "system", "content": turn.text})
            case SystemTurn():
                _add_update(sent, system_update(turn.text))
            case AssistantTurn():
                sent += _assistant(turn, stored=stored)
            case ToolTurn():
                kind = kinds.get(turn.result.call_id, "function_call")
                sent.append(_output(turn.result, kind))
            case _:
                assert_never(turn)
    return sent


def _add_update(sent: list[Item], text: str) -> None:
    """Join a directly preceding user message, else open a new one (O-18, O-19)."""
    part = _content(TextPart(text))
    if not sent or sent[-1].get("role") != "user":
        sent.append({"role": "user", "content": [part]})
        return
    sent[-1] = {"role": "user", "content": [*sent[-1]["content"], part]}


def _kinds(turns: Sequence[Turn]) -> dict[str, str]:
    """The item types of calls that are no function calls, by call id."""
    parts = (part for turn in turns if isinstance(turn, AssistantTurn) for part in turn.content)
    return {
        part.call_id: item["type"]
        for part in parts
        if isinstance(part, ToolCallPart) and (item := _native(part)) is not None
    }


def _native(part: ToolCallPart) -> Item | None:
    """The item of a call that is no function call, as it came."""
    item = (part.metadata or {}).get("item")
    return item if isinstance(item, dict) and "type" in item else None


def _assistant(turn: AssistantTurn, *, stored: bool) -> list[Item]:
    sent: list[tuple[Item, bool]] = []
    results = {part.call_id: part for part in turn.content if isinstance(part, ToolResultPart)}
    for _, group in groupby(enumerate(turn.content), lambda at: _item_key(*at)):
        first, *more = [part for _, part in group]
        made: list[Item] = []
        match first:
            case TextPart():
                texts = [first, *(part for part in more if isinstance(part, TextPart))]
                made = [_message(texts, stored=stored)]
            case ReasoningPart():
                made = _reasoning([first, *_reasonings(more)], stored=stored)
            case ToolCallPart(executed=True):
                made = _hosted(first, results.get(first.call_id), stored=stored)
            case ToolCallPart():
                made = [_native(first) or _call(first) | _stored_id(first, stored=stored)]
            case ToolResultPart():
                pass
            case _:
                assert_never(first)
        sent += [(item, isinstance(first, ReasoningPart)) for item in made]
    while sent and sent[-1][1]:
        # Reasoning is refused without the item that it led to, and that one never came.
        sent.pop()
    return [item for item, _ in sent]


def _item_key(at: int, part: Part) -> object:
    """Parts of one item are neighbours and share its id; every other part is an item of its own."""
    joins = isinstance(part, ReasoningPart | TextPart)
    item = (part.metadata or {}).get("item_id") if joins else None
    return at if item is None else (type(part), item)


def _message(parts: Sequence[TextPart], *, stored: bool) -> Item:
    """The parts of one message, with the phase that the model gave it: it wants that back."""
    message: Item = {"role": "assistant", "content": [_said(part) for part in parts]}
    phase = (parts[0].metadata or {}).get("phase")
    if phase is not None:
        message["phase"] = phase
    known = _stored_id(parts[0], stored=stored)
    return {"type": "message", "status": "completed"} | message | known if known else message


def _said(part: TextPart) -> Item:
    known = part.metadata or {}
    if known.get("refusal"):
        return {"type": "refusal", "refusal": part.text}
    cited = {"annotations": known["annotations"]} if known.get("annotations") else {}
    return {"type": "output_text", "text": part.text} | cited


def _stored_id(part: TextPart | ToolCallPart, *, stored: bool) -> Item:
    """Stored reasoning is refused without the very item that followed it: that one is named."""
    item_id = (part.metadata or {}).get("item_id") if stored else None
    return {"id": item_id} if item_id else {}


def _reasonings(parts: Sequence[Part]) -> Iterator[ReasoningPart]:
    return (part for part in parts if isinstance(part, ReasoningPart))


def _reasoning(parts: Sequence[ReasoningPart], *, stored: bool) -> list[Item]:
    known = [part.metadata or {} for part in parts]
    if stored:
        return _reference(known[0].get("item_id"))
    encrypted = [kept["encrypted_content"] for kept in known if kept.get("encrypted_content")]
    if not encrypted:
        return []
    raw = any(kept.get("raw") for kept in known)
    texts = [part.text for part in parts if part.text]
    item: Item = {
        "type": "reasoning",
        "summary": [] if raw else [{"type": "summary_text", "text": text} for text in texts],
    }
    if raw:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in texts]
    return [item | {"encrypted_content": encrypted[-1]}]


def _hosted(call: ToolCallPart, result: ToolResultPart | None, *, stored: bool) -> list[Item]:
    """Our own item, by reference or as it came; another provider's goes as an ordinary call."""
    if result is None:
        return []
    item_id = (result.metadata or {}).get("item_id")
    if item_id is None:
        return [_call(call), _output(result, "function_call")]
    if stored:
        return _reference(item_id)
    whole = result.value
    return [whole] if isinstance(whole, dict) and "type" in whole else []


def _reference(item_id: object) -> list[Item]:
    return [{"type": "item_reference", "id": item_id}] if item_id else []


def _call(part: ToolCallPart) -> Item:
    return {
        "type": "function_call",
        "call_id": part.call_id,
        "name": part.name,
        "arguments": json_text(part.input),
    }


def _output(result: ToolResultPart, kind: str) -> Item:
    """Media needs a list; everything else is text, errors too: the wire has no flag for them."""
    output: object = result_text(result)
    if kind == "shell_call":
        output = [{"stdout": output, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    elif result_media(result):
        output = [_content(part) for part in result_parts(result)]
    return {"type": f"{kind}_output", "call_id": result.call_id, "output": output}


def _content(part: TextPart | MediaPart) -> Item:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    media = inline(part)
    match media.mime.split("/"):
        case ["image", _]:
            return {"type": "input_image", "image_url": media.uri}
        case ["text", _] | ["application", "json"]:
            return {"type": "input_text", "text": media.decoded.decode(errors="replace")}
        case ["application", "pdf"]:
            name = part.name or "document.pdf"
            return {"type": "input_file", "filename": name, "file_data": media.uri}
        case _:
            return _content(TextPart(untaken(part, "the Responses API")))
