"""The conversation as Chat messages."""

from collections.abc import Sequence
from typing import Any, TypeAlias, assert_never

from fairlead_llm.content import json_text, result_media, result_text, system_update, untaken
from fairlead_llm.media import inline
from fairlead_llm.openai_chat import reasoning
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

Message: TypeAlias = dict[str, Any]

_MEDIA_FOLLOWS = "[The result's media follows.]"


def messages(request: ModelRequest) -> list[Message]:
    """The system text, then every turn in order. Raises Unsendable.

    A tool message is text only, so its media waits for the next turn that is no tool result (O-23).
    """
    sent: list[Message] = []
    if request.system:
        sent.append({"role": "system", "content": "\n".join(request.system)})
    held: list[MediaPart] = []
    loop = _loop_start(request.turns)
    for index, turn in enumerate(request.turns):
        if held and not isinstance(turn, ToolTurn):
            sent.append(_media_message(held))
            held = []
        match turn:
            case UserTurn():
                sent.append({"role": "user", "content": _user_content(turn)})
            case SystemTurn():
                _add_update(sent, system_update(turn.text))
            case AssistantTurn():
                sent += _assistant(turn, in_loop=index >= loop)
                held += [part for result in _hosted(turn) for part in result_media(result)]
            case ToolTurn():
                sent.append(_tool(turn.result))
                held += result_media(turn.result)
            case _:
                assert_never(turn)
    return [*sent, _media_message(held)] if held else sent


def _loop_start(turns: Sequence[Turn]) -> int:
    """Where the open tool loop begins: after the last thing the user said."""
    users = [index for index, turn in enumerate(turns) if isinstance(turn, UserTurn)]
    return users[-1] + 1 if users else 0


def _media_message(held: Sequence[MediaPart]) -> Message:
    return {"role": "user", "content": [_media(part) for part in held]}


def _user_content(turn: UserTurn) -> str | list[Message]:
    if any(isinstance(part, MediaPart) for part in turn.content):
        return [_text(p.text) if isinstance(p, TextPart) else _media(p) for p in turn.content]
    return "\n".join(part.text for part in turn.content if isinstance(part, TextPart))


def _add_update(sent: list[Message], text: str) -> None:
    """Join a directly preceding user message, else open a new one (O-18, O-19)."""
    if not sent or sent[-1]["role"] != "user":
        sent.append({"role": "user", "content": text})
        return
    before = sent[-1]["content"]
    joined = f"{before}\n{text}" if isinstance(before, str) else [*before, _text(text)]
    sent[-1] = {"role": "user", "content": joined}


def _assistant(turn: AssistantTurn, *, in_loop: bool) -> list[Message]:
    """One assistant message, then the results of tools the provider ran itself.

    Chat has no hosted results: they go back as ordinary ones, so such a history can go on (O-25).
    """
    text = "".join(part.text for part in turn.content if isinstance(part, TextPart))
    calls = [_call(part) for part in turn.content if isinstance(part, ToolCallPart)]
    if not text and not calls:
        return []
    thoughts = [part for part in turn.content if isinstance(part, ReasoningPart)]
    message: Message = {"role": "assistant", "content": text or None}
    message |= reasoning.replayed(thoughts, in_loop=in_loop)
    if calls:
        message["tool_calls"] = calls
    return [message, *(_tool(result) for result in _hosted(turn))]


def _hosted(turn: AssistantTurn) -> list[ToolResultPart]:
    return [part for part in turn.content if isinstance(part, ToolResultPart)]


def _call(part: ToolCallPart) -> Message:
    function = {"name": part.name, "arguments": json_text(part.input)}
    return {"id": part.call_id, "type": "function", "function": function}


def _tool(result: ToolResultPart) -> Message:
    text = result_text(result)
    if not text and result_media(result):
        text = _MEDIA_FOLLOWS
    return {"role": "tool", "tool_call_id": result.call_id, "content": text}


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _media(part: MediaPart) -> Message:
    media = inline(part)
    match media.mime.split("/"):
        case ["image", _]:
            return {"type": "image_url", "image_url": {"url": media.uri}}
        case ["audio", kind]:
            audio = {"data": media.encoded, "format": kind.removeprefix("x-")}
            return {"type": "input_audio", "input_audio": audio}
        case ["text", _] | ["application", "json"]:
            return _text(media.decoded.decode(errors="replace"))
        case ["application", "pdf"]:
            file = {"filename": part.name or "document.pdf", "file_data": media.uri}
            return {"type": "file", "file": file}
        case _:
            return _text(untaken(part, "Chat Completions"))
