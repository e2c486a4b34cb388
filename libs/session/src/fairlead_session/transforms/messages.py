"""Messages of a request as JSON and back. What a provider signed, and the pairs of calls and results, stay."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pydantic_core import to_json

from fairlead_schema.provider.request import (
    AssistantTurn,
    MediaPart,
    ReasoningPart,
    SystemTurn,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)
from fairlead_schema.transforms.answer import (
    RequestBlock,
    RequestCall,
    RequestFile,
    RequestMessage,
    RequestReasoning,
    RequestResult,
    RequestText,
)

Part: TypeAlias = TextPart | MediaPart | ReasoningPart | ToolCallPart | ToolResultPart

PAIRS_CHANGED: Final = "messages: calls, their results and reasoning must stay, in their order"


class InvalidChange(Exception):
    """A transform changed what it may not change. The message names the field, never its value."""


def message_json(turn: Turn) -> dict[str, Any]:
    """One message as a transform gets it."""
    return {"role": turn.role, "content": [_block(part) for part in _parts(turn)]}


def apply_messages(turns: tuple[Turn, ...], messages: Sequence[RequestMessage]) -> tuple[Turn, ...]:
    """The turns after a transform. A message that came back as it was is the same object.

    Raises InvalidChange.
    """
    same = {to_json(message_json(turn)): turn for turn in turns}
    originals = _Originals(turns)
    changed = tuple(
        same.get(to_json(_sent_form(message))) or originals.build(message) for message in messages
    )
    if tuple(_skeleton(changed)) != tuple(_skeleton(turns)):
        raise InvalidChange(PAIRS_CHANGED)
    if changed[-1].role != turns[-1].role:
        raise InvalidChange("messages: the last message must keep its role")
    return changed


class _Originals:
    """The parts of the request, to which a changed message refers."""

    def __init__(self, turns: tuple[Turn, ...]) -> None:
        parts = [part for turn in turns for part in _parts(turn)]
        self._calls = {part.call_id: part for part in parts if isinstance(part, ToolCallPart)}
        self._results = {part.call_id: part for part in parts if isinstance(part, ToolResultPart)}
        self._reasoning = {part.text: part for part in parts if isinstance(part, ReasoningPart)}
        self._texts = {part.text: part for part in parts if isinstance(part, TextPart)}

    def build(self, message: RequestMessage) -> Turn:
        parts = tuple(self._part(block) for block in message.content)
        if not parts:
            raise InvalidChange("messages: a message has no content")
        match message.role:
            case "user":
                return UserTurn(_only(parts, (TextPart, MediaPart), "user"))
            case "assistant":
                kinds = (TextPart, ReasoningPart, ToolCallPart, ToolResultPart)
                return AssistantTurn(_only(parts, kinds, "assistant"))
            case "tool":
                if len(parts) != 1 or not isinstance(parts[0], ToolResultPart):
                    raise InvalidChange("messages: a tool message has exactly one result")
                return ToolTurn(parts[0])
            case "system":
                texts = [part.text for part in _only(parts, (TextPart,), "system")]
                return SystemTurn("\n".join(texts))

    def _part(self, block: RequestBlock) -> Part:
        match block:
            case RequestText():
                if not block.text:
                    raise InvalidChange("messages: a text is empty")
                return self._texts.get(block.text) or TextPart(block.text)
            case RequestFile():
                return MediaPart(block.uri, block.mime, block.name)
            case RequestReasoning():
                return self._reasoning.get(block.text) or ReasoningPart(block.text)
            case RequestCall():
                call = self._calls.get(block.call_id)
                if call is None:
                    raise InvalidChange(PAIRS_CHANGED)
                return replace(call, name=block.name, input=block.input, executed=block.executed)
            case RequestResult():
                result = self._results.get(block.call_id)
                if result is None:
                    raise InvalidChange(PAIRS_CHANGED)
                return replace(result, name=block.name, kind=block.kind, value=block.value)


def _only(parts: tuple[Part, ...], kinds: tuple[type, ...], role: str) -> Any:  # noqa: ANN401 - narrowed
    if not all(isinstance(part, kinds) for part in parts):
        raise InvalidChange(f"messages: a {role} message cannot have such content")
    return parts


def _skeleton(turns: Sequence[Turn]) -> Iterator[tuple[object, ...]]:
    """What must stay: each call and each result in its place, and whatever a provider made itself."""
    before = None
    for turn in turns:
        for part in _parts(turn):
            match part:
                case ToolCallPart():
                    own = to_json(part.input) if part.executed else None
                    yield "call", turn.role, part.call_id, part.name, part.executed, own
                case ToolResultPart() if turn.role == "tool":
                    # No other message may stand between a call and its result.
                    yield "result", before in {"tool", "assistant"}, part.call_id, part.name
                case ToolResultPart():
                    yield "hosted", part.call_id, part.name, part.kind, to_json(part.value)
                case ReasoningPart():
                    yield "reasoning", part.text, to_json(part.metadata)
                case _:
                    pass
        before = turn.role


def _parts(turn: Turn) -> tuple[Part, ...]:
    match turn:
        case SystemTurn(text=text):
            return (TextPart(text),)
        case ToolTurn(result=result):
            return (result,)
        case _:
            return turn.content


def _block(part: Part) -> dict[str, Any]:
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case MediaPart():
            named = {} if part.name is None else {"name": part.name}
            return {"type": "file", "uri": part.uri, "mime": part.mime, **named}
        case ReasoningPart(text=text):
            return {"type": "reasoning", "text": text}
        case ToolCallPart():
            return {
                "type": "call",
                "callID": part.call_id,
                "name": part.name,
                "input": part.input,
                "executed": part.executed,
            }
        case ToolResultPart():
            return {
                "type": "result",
                "callID": part.call_id,
                "name": part.name,
                "kind": part.kind,
                "value": part.value,
            }


def _sent_form(message: RequestMessage) -> dict[str, Any]:
    """A message in the form of `message_json`, with the keys in the same order."""
    blocks = (block.model_dump(by_alias=True) for block in message.content)
    return {
        "role": message.role,
        "content": [
            {key: value for key, value in block.items() if key != "name" or value is not None}
            for block in blocks
        ],
    }
