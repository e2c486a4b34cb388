"""The conversation as messages of Chat Completions."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, assert_never

from fairlead_llm.content import (
    json_text,
    result_media,
    result_text,
    system_update,
    unsupported_file_text,
)
from fairlead_llm.history_memo import HistoryMemo
from fairlead_llm.inline_media import inline_media
from fairlead_llm.openai_chat import reasoning
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

Message: TypeAlias = dict[str, Any]

_MEDIA_FOLLOWS = "[The result's media follows.]"
_AUDIO_FORMATS: Final = {"wav": "wav", "x-wav": "wav", "wave": "wav", "mpeg": "mp3", "mp3": "mp3"}


def build_messages(request: ModelRequest) -> list[Message]:
    """The system text, then every turn in order. Raises UnsendableRequest.

    A tool message is text only, so its media follows the last tool result in a row (O-23).
    """
    system = [{"role": "system", "content": "\n".join(request.system)}] if request.system else []
    turns, loop = request.turns, _loop_start(request.turns)
    # No later turn changes what comes before the last user turn.
    closed = max(loop - 1, 0)
    known = _closed.find(turns, closed)
    before = _join_turns(turns, len(known.ids), closed, loop, [*known.items])
    _closed.keep(known, turns, closed, before)
    return system + _join_turns(turns, closed, len(turns), loop, before)


_closed: Final = HistoryMemo[Message]()


def _join_turns(
    turns: Sequence[Turn], start: int, end: int, loop: int, messages: list[Message]
) -> list[Message]:
    """The messages of the turns before `start`, and those of the turns up to `end`."""
    media: list[MediaPart] = []
    for index, turn in enumerate(turns[start:end], start):
        if media and not isinstance(turn, ToolTurn):
            messages.append(_media_message(media))
            media = []
        match turn:
            case UserTurn():
                messages.append(_user_message(turn))
            case SystemTurn():
                _add_update(messages, system_update(turn.text))
            case AssistantTurn():
                translate = _messages_in_loop if index >= loop else _messages_before_loop
                own, own_media = translate(turn)
                messages += own
                media += own_media
            case ToolTurn():
                message, own_media = _result_message(turn)
                messages.append(message)
                media += own_media
            case _:
                assert_never(turn)
    return [*messages, _media_message(media)] if media else messages


def _loop_start(turns: Sequence[Turn]) -> int:
    """The index at which the open tool loop begins: after the last user turn."""
    for index in reversed(range(len(turns))):
        if isinstance(turns[index], UserTurn):
            return index + 1
    return 0


def _media_message(media: Sequence[MediaPart]) -> Message:
    return {"role": "user", "content": [_media_content(part) for part in media]}


@TurnMemo
def _user_message(turn: UserTurn) -> Message:
    return {"role": "user", "content": _user_content(turn)}


def _user_content(turn: UserTurn) -> str | list[Message]:
    if any(isinstance(part, MediaPart) for part in turn.content):
        return [
            _text_content(p.text) if isinstance(p, TextPart) else _media_content(p)
            for p in turn.content
        ]
    return "\n".join(part.text for part in turn.content if isinstance(part, TextPart))


def _add_update(messages: list[Message], text: str) -> None:
    """Join a directly preceding user message, else add a new one (O-18, O-19)."""
    if not messages or messages[-1]["role"] != "user":
        messages.append({"role": "user", "content": text})
        return
    before = messages[-1]["content"]
    content = f"{before}\n{text}" if isinstance(before, str) else [*before, _text_content(text)]
    messages[-1] = {"role": "user", "content": content}


def _assistant_messages(turn: AssistantTurn, *, in_loop: bool) -> list[Message]:
    """One assistant message, then the results of hosted tools.

    Chat has no hosted results. They become ordinary results, so that the session can go on (O-25).
    """
    texts = [part.text for part in turn.content if isinstance(part, TextPart) and part.text]
    # A message has one text. Blocks of it, such as another model's reasoning, stay paragraphs.
    text = "\n\n".join(texts)
    calls = [_tool_call(part) for part in turn.content if isinstance(part, ToolCallPart)]
    if not text and not calls:
        return []
    parts = [part for part in turn.content if isinstance(part, ReasoningPart)]
    message: Message = {"role": "assistant", "content": text or None}
    message |= reasoning.message_fields(parts, in_loop=in_loop)
    if calls:
        message["tool_calls"] = calls
    return [message, *(_tool_message(result) for result in _hosted_results(turn))]


@TurnMemo
def _messages_before_loop(turn: AssistantTurn) -> tuple[list[Message], list[MediaPart]]:
    return _assistant_messages(turn, in_loop=False), _hosted_media(turn)


@TurnMemo
def _messages_in_loop(turn: AssistantTurn) -> tuple[list[Message], list[MediaPart]]:
    return _assistant_messages(turn, in_loop=True), _hosted_media(turn)


@TurnMemo
def _result_message(turn: ToolTurn) -> tuple[Message, list[MediaPart]]:
    return _tool_message(turn.result), list(result_media(turn.result))


def _hosted_media(turn: AssistantTurn) -> list[MediaPart]:
    return [part for result in _hosted_results(turn) for part in result_media(result)]


def _hosted_results(turn: AssistantTurn) -> list[ToolResultPart]:
    return [part for part in turn.content if isinstance(part, ToolResultPart)]


def _tool_call(part: ToolCallPart) -> Message:
    function = {"name": part.name, "arguments": json_text(part.input)}
    return {"id": part.call_id, "type": "function", "function": function}


def _tool_message(result: ToolResultPart) -> Message:
    text = result_text(result)
    if not text and result_media(result):
        text = _MEDIA_FOLLOWS
    return {"role": "tool", "tool_call_id": result.call_id, "content": text}


def _text_content(text: str) -> Message:
    return {"type": "text", "text": text}


def _media_content(part: MediaPart) -> Message:
    media = inline_media(part)
    match media.mime.split("/"):
        case ["image", _]:
            return {"type": "image_url", "image_url": {"url": media.uri}}
        case ["audio", kind] if kind in _AUDIO_FORMATS:
            audio = {"data": media.encoded, "format": _AUDIO_FORMATS[kind]}
            return {"type": "input_audio", "input_audio": audio}
        case ["text", _] | ["application", "json"]:
            return _text_content(media.decoded.decode(errors="replace"))
        case ["application", "pdf"]:
            file = {"filename": part.name or "document.pdf", "file_data": media.uri}
            return {"type": "file", "file": file}
        case _:
            return _text_content(unsupported_file_text(part, "Chat Completions"))
