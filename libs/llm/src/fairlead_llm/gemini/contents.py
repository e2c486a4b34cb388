"""The conversation as Gemini contents."""

import re
from functools import partial
from typing import Any, Final, TypeAlias, assert_never

from fairlead_llm.calls.arguments import as_object
from fairlead_llm.content import (
    CONTINUE_TEXT,
    result_media,
    result_text,
    system_update,
    unsupported_file_text,
)
from fairlead_llm.gemini.metadata import (
    HOSTED_RESULTS,
    SIGNATURE,
    TEXT_SIGNATURE,
    Part,
    add_signature,
    read_metadata,
)
from fairlead_llm.inline_media import inline_media
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
    UserTurn,
)

Content: TypeAlias = dict[str, Any]

# These models refuse a call without its signature, and take media inside a function response.
_GEMINI_3 = re.compile(r"(?:^|/)gemini-[3-9]")
# The documented signature for calls of other models.
SKIP_SIGNATURE_CHECK = "skip_thought_signature_validator"


def build_contents(request: ModelRequest) -> list[Content]:
    """Every turn in order, without empty turns. Raises UnsendableRequest."""
    newer = _GEMINI_3.search(request.model) is not None
    contents: list[Content] = []
    for turn in request.turns:
        match turn:
            case UserTurn():
                _add(contents, "user", _user_parts(turn))
            case SystemTurn():
                _add_update(contents, system_update(turn.text))
            case AssistantTurn():
                own, results = (_newer_parts if newer else _older_parts)(turn)
                _add(contents, "model", own)
                for parts in results:
                    _add_result(contents, parts)
            case ToolTurn():
                _add_result(contents, (_newer_response if newer else _older_response)(turn))
            case _:
                assert_never(turn)
    if (
        contents
        and contents[-1]["role"] == "model"
        and "functionCall" not in contents[-1]["parts"][-1]
    ):
        # The API refuses a conversation that ends with the model's words.
        _add(contents, "user", [{"text": CONTINUE_TEXT}])
    return contents


def _add(contents: list[Content], role: str, parts: list[Part]) -> None:
    if parts:
        contents.append({"role": role, "parts": parts})


def _add_update(contents: list[Content], text: str) -> None:
    """Join a directly preceding user content, else add a new one (O-18, O-19)."""
    if contents and contents[-1]["role"] == "user":
        contents[-1] = {"role": "user", "parts": [*contents[-1]["parts"], {"text": text}]}
    else:
        _add(contents, "user", [{"text": text}])


def _add_result(contents: list[Content], parts: list[Part]) -> None:
    """The responses to all calls of one answer share a content."""
    if contents and "functionResponse" in contents[-1]["parts"][0]:
        contents[-1] = {"role": "user", "parts": [*contents[-1]["parts"], *parts]}
    else:
        _add(contents, "user", parts)


@TurnMemo
def _user_parts(turn: UserTurn) -> list[Part]:
    return [
        _media_part(part) if isinstance(part, MediaPart) else {"text": part.text}
        for part in turn.content
        if isinstance(part, MediaPart) or part.text
    ]


def _assistant_parts(turn: AssistantTurn, *, newer: bool) -> tuple[list[Part], list[list[Part]]]:
    """What the model said, and each result of another provider's tools."""
    results = [_response_parts(result, newer=newer) for result in _foreign_results(turn)]
    return _model_parts(turn, newer=newer), results


_newer_parts: Final = TurnMemo(partial(_assistant_parts, newer=True))
_older_parts: Final = TurnMemo(partial(_assistant_parts, newer=False))


@TurnMemo
def _newer_response(turn: ToolTurn) -> list[Part]:
    return _response_parts(turn.result, newer=True)


@TurnMemo
def _older_response(turn: ToolTurn) -> list[Part]:
    return _response_parts(turn.result, newer=False)


def _model_parts(turn: AssistantTurn, *, newer: bool) -> list[Part]:
    """Parts of this protocol go back unchanged. Parts of other providers are adapted."""
    with_result = {part.call_id for part in turn.content if isinstance(part, ToolResultPart)}
    parts: list[Part] = []
    for part in turn.content:
        match part:
            case TextPart():
                parts += [{"text": part.text}] if part.text else []
            case ReasoningPart():
                _add_reasoning(parts, part)
            case ToolCallPart():
                if not part.executed or _is_hosted(part) or part.call_id in with_result:
                    parts.append(add_signature(_call_part(part), part.metadata))
            case ToolResultPart():
                parts += _hosted_result_parts(part)
            case _:
                assert_never(part)
    return _mark_unsigned_call(parts) if newer else parts


def _add_reasoning(parts: list[Part], part: ReasoningPart) -> None:
    fields = read_metadata(part.metadata)
    if isinstance(fields.get("part"), dict):
        parts.append(fields["part"])
    elif TEXT_SIGNATURE in fields and parts and "text" in parts[-1]:
        parts[-1] = parts[-1] | {SIGNATURE: fields[TEXT_SIGNATURE]}
    elif part.text:
        parts.append(add_signature({"text": part.text, "thought": True}, part.metadata))


def _is_hosted(part: ToolCallPart | ToolResultPart) -> bool:
    return read_metadata(part.metadata).get("kind") is not None


def _call_part(part: ToolCallPart) -> Part:
    if part.executed and _is_hosted(part):
        return {read_metadata(part.metadata)["kind"]: part.input}
    call = {"id": part.call_id, "name": part.name, "args": as_object(part.input)}
    return {"functionCall": call}


def _hosted_result_parts(part: ToolResultPart) -> list[Part]:
    """A hosted result of this protocol in its place, else nothing."""
    fields = read_metadata(part.metadata)
    if fields.get("kind") not in HOSTED_RESULTS:
        return []
    value = fields.get("value", part.value)
    return [add_signature({fields["kind"]: value}, part.metadata)]


def _foreign_results(turn: AssistantTurn) -> list[ToolResultPart]:
    """Hosted results of other providers, which become ordinary results."""
    results = (part for part in turn.content if isinstance(part, ToolResultPart))
    return [part for part in results if not _is_hosted(part)]


def _mark_unsigned_call(parts: list[Part]) -> list[Part]:
    """Sign the first call, because the API wants a signature on the first of parallel calls.

    A first call without a signature comes from another model.
    """
    at = next((i for i, part in enumerate(parts) if "functionCall" in part), None)
    if at is None or SIGNATURE in parts[at]:
        return parts
    return [*parts[:at], parts[at] | {SIGNATURE: SKIP_SIGNATURE_CHECK}, *parts[at + 1 :]]


def _response_parts(result: ToolResultPart, *, newer: bool) -> list[Part]:
    """A function response. Its media goes inside, or beside it for older models."""
    response: dict[str, Any] = {"id": result.call_id, "name": result.name}
    match result.kind:
        case "error":
            response["response"] = {"error": result.value}
        case "json":
            response["response"] = {"output": result.value}
        case "text" | "content":
            response["response"] = {"output": result_text(result)}
    media = [_media_part(part) for part in result_media(result)]
    if media and newer:
        return [{"functionResponse": response | {"parts": media}}]
    return [{"functionResponse": response}, *media]


def _media_part(part: MediaPart) -> Part:
    media = inline_media(part)
    kind = media.mime.partition("/")[0]
    if media.mime == "application/json":
        return {"text": media.decoded.decode(errors="replace")}
    if kind not in {"image", "audio", "video", "text"} and media.mime != "application/pdf":
        return {"text": unsupported_file_text(part, "Gemini")}
    return {"inlineData": {"mimeType": media.mime, "data": media.encoded}}
