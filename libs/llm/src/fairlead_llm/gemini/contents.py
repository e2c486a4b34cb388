"""The conversation as Gemini contents."""

import re
from typing import Any, TypeAlias, assert_never

from fairlead_llm.arguments import as_object
from fairlead_llm.content import GO_ON, result_media, result_text, system_update, untaken
from fairlead_llm.gemini import native
from fairlead_llm.gemini.native import SIGNATURE, TEXT_SIGNATURE, Part
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
    UserTurn,
)

Content: TypeAlias = dict[str, Any]

# These models refuse a call without its signature, and take media inside a function's response.
_THIRD = re.compile(r"(?:^|/)gemini-[3-9]")
# The documented word for calls that another model made.
UNSIGNED = "skip_thought_signature_validator"


def contents(request: ModelRequest) -> list[Content]:
    """Every turn in order; a turn with nothing to say is left out. Raises Unsendable."""
    newer = _THIRD.search(request.model) is not None
    sent: list[Content] = []
    for turn in request.turns:
        match turn:
            case UserTurn():
                _add(sent, "user", _user(turn))
            case SystemTurn():
                _add_update(sent, system_update(turn.text))
            case AssistantTurn():
                _add(sent, "model", _model(turn, newer=newer))
                for result in _foreign_results(turn):
                    _add_result(sent, _response(result, newer=newer))
            case ToolTurn():
                _add_result(sent, _response(turn.result, newer=newer))
            case _:
                assert_never(turn)
    if sent and sent[-1]["role"] == "model" and "functionCall" not in sent[-1]["parts"][-1]:
        # A conversation that ends with the model's own words is refused.
        _add(sent, "user", [{"text": GO_ON}])
    return sent


def _add(sent: list[Content], role: str, parts: list[Part]) -> None:
    if parts:
        sent.append({"role": role, "parts": parts})


def _add_update(sent: list[Content], text: str) -> None:
    """Join a directly preceding user content, else open a new one (O-18, O-19)."""
    if sent and sent[-1]["role"] == "user":
        sent[-1] = {"role": "user", "parts": [*sent[-1]["parts"], {"text": text}]}
    else:
        _add(sent, "user", [{"text": text}])


def _add_result(sent: list[Content], parts: list[Part]) -> None:
    """The responses to all calls of one answer share a content."""
    if sent and "functionResponse" in sent[-1]["parts"][0]:
        sent[-1] = {"role": "user", "parts": [*sent[-1]["parts"], *parts]}
    else:
        _add(sent, "user", parts)


def _user(turn: UserTurn) -> list[Part]:
    return [
        _media(part) if isinstance(part, MediaPart) else {"text": part.text}
        for part in turn.content
        if isinstance(part, MediaPart) or part.text
    ]


def _model(turn: AssistantTurn, *, newer: bool) -> list[Part]:
    """Parts of our own protocol come back as they came; what came from others is adapted."""
    answered = {part.call_id for part in turn.content if isinstance(part, ToolResultPart)}
    parts: list[Part] = []
    for part in turn.content:
        match part:
            case TextPart():
                parts += [{"text": part.text}] if part.text else []
            case ReasoningPart():
                _add_reasoning(parts, part)
            case ToolCallPart():
                if not part.executed or _hosted(part) or part.call_id in answered:
                    parts.append(native.signed(_call(part), part.metadata))
            case ToolResultPart():
                parts += _hosted_result(part)
            case _:
                assert_never(part)
    return _excused(parts) if newer else parts


def _add_reasoning(parts: list[Part], part: ReasoningPart) -> None:
    known = native.of(part.metadata)
    if isinstance(known.get("part"), dict):
        parts.append(known["part"])
    elif TEXT_SIGNATURE in known and parts and "text" in parts[-1]:
        parts[-1] = parts[-1] | {SIGNATURE: known[TEXT_SIGNATURE]}
    elif part.text:
        parts.append(native.signed({"text": part.text, "thought": True}, part.metadata))


def _hosted(part: ToolCallPart | ToolResultPart) -> bool:
    return native.of(part.metadata).get("kind") is not None


def _call(part: ToolCallPart) -> Part:
    if part.executed and _hosted(part):
        return {native.of(part.metadata)["kind"]: part.input}
    call = {"id": part.call_id, "name": part.name, "args": as_object(part.input)}
    return {"functionCall": call}


def _hosted_result(part: ToolResultPart) -> list[Part]:
    """A hosted result in its place; a call without one has none, and another's goes elsewhere."""
    known = native.of(part.metadata)
    if known.get("kind") not in native.HOSTED_RESULTS:
        return []
    value = known.get("value", part.value)
    return [native.signed({known["kind"]: value}, part.metadata)]


def _foreign_results(turn: AssistantTurn) -> list[ToolResultPart]:
    """Results of tools that another provider ran: they go back as ordinary ones."""
    results = (part for part in turn.content if isinstance(part, ToolResultPart))
    return [part for part in results if not _hosted(part)]


def _excused(parts: list[Part]) -> list[Part]:
    """Of parallel calls only the first is signed; where it is not, another model made it."""
    at = next((i for i, part in enumerate(parts) if "functionCall" in part), None)
    if at is None or SIGNATURE in parts[at]:
        return parts
    return [*parts[:at], parts[at] | {SIGNATURE: UNSIGNED}, *parts[at + 1 :]]


def _response(result: ToolResultPart, *, newer: bool) -> list[Part]:
    """A function's response; its media inside it, or beside it for models that know no better."""
    response: dict[str, Any] = {"id": result.call_id, "name": result.name}
    match result.kind:
        case "error":
            response["response"] = {"error": result.value}
        case "json":
            response["response"] = {"output": result.value}
        case "text" | "content":
            response["response"] = {"output": result_text(result)}
    media = [_media(part) for part in result_media(result)]
    if media and newer:
        return [{"functionResponse": response | {"parts": media}}]
    return [{"functionResponse": response}, *media]


def _media(part: MediaPart) -> Part:
    media = inline(part)
    kind = media.mime.partition("/")[0]
    if media.mime == "application/json":
        return {"text": media.decoded.decode(errors="replace")}
    if kind not in {"image", "audio", "video", "text"} and media.mime != "application/pdf":
        return {"text": untaken(part, "Gemini")}
    return {"inlineData": {"mimeType": media.mime, "data": media.encoded}}
