"""The conversation as messages of the Messages API."""

from typing import Any, Final, TypeAlias, assert_never

from fairlead_llm.anthropic_messages import blocks
from fairlead_llm.anthropic_messages.metadata import Block, is_hosted
from fairlead_llm.content import CONTINUE_TEXT, system_update
from fairlead_llm.errors import UnsendableRequest
from fairlead_llm.turn_memo import TurnMemo
from fairlead_schema.provider.request import (
    AssistantTurn,
    ModelRequest,
    SystemTurn,
    ToolTurn,
    UserTurn,
)

Message: TypeAlias = dict[str, Any]

_MODEL_WORDS = frozenset({"text", "thinking", "redacted_thinking"})


def build_messages(request: ModelRequest, *, native_system: bool) -> list[Message]:
    """Every turn in order, without empty turns. Raises UnsendableRequest.

    A chronological system message has its own role only for models that know the role, and only
    in places that the API allows. Elsewhere it becomes user text (O-18 to O-20).
    """
    plain = _plain_messages(request)
    messages: list[Message] = []
    for at, message in enumerate(plain):
        if message["role"] == "system" and not (native_system and _allows_system_role(plain, at)):
            _add_update(messages, message)
        else:
            messages.append(message)
    return messages


def append_continue_message(messages: list[Message]) -> list[Message]:
    """Add a user message after the model's words, because the API refuses them in last place.

    A paused hosted call stays in last place, so that the provider goes on with the call.
    """
    last = messages[-1] if messages else None
    if last is None or last["role"] != "assistant":
        return messages
    if last["content"][-1]["type"] not in _MODEL_WORDS:
        return messages
    return [*messages, {"role": "user", "content": [blocks.text_block(CONTINUE_TEXT)]}]


def _plain_messages(request: ModelRequest) -> list[Message]:
    """The turns as messages, with system messages under the role `system`."""
    messages: list[Message] = []
    for turn in request.turns:
        match turn:
            case UserTurn():
                _add(messages, "user", _user_blocks(turn))
            case AssistantTurn():
                lowered = _assistant_blocks(turn)
                _add(messages, "assistant", lowered.blocks)
                _add(messages, "user", lowered.results)
            case ToolTurn():
                _add_result(messages, _result_block(turn))
            case SystemTurn():
                _add(
                    messages, "system", [blocks.text_block(turn.text)] if turn.text.strip() else []
                )
            case _:
                assert_never(turn)
    return messages


_assistant_blocks: Final = TurnMemo(blocks.assistant_blocks)


@TurnMemo
def _user_blocks(turn: UserTurn) -> list[Block]:
    return blocks.user_blocks(turn.content)


@TurnMemo
def _result_block(turn: ToolTurn) -> Block:
    return blocks.result_block(turn.result)


def _add(messages: list[Message], role: str, content: list[Block]) -> None:
    if content:
        messages.append({"role": role, "content": content})


def _add_result(messages: list[Message], result: Block) -> None:
    """All results of one answer share a message. Nothing may stand before them (O-21)."""
    last = messages[-1] if messages else None
    if last is not None and last["role"] == "system":
        raise UnsendableRequest("A system update stands between a tool call and its result")
    if last is not None and last["content"][0]["type"] == "tool_result":
        messages[-1] = {"role": "user", "content": [*last["content"], result]}
    else:
        messages.append({"role": "user", "content": [result]})


def _allows_system_role(messages: list[Message], at: int) -> bool:
    """Whether a user or a hosted tool comes before, and an assistant or nothing after (O-20)."""
    if at == 0 or (at + 1 < len(messages) and messages[at + 1]["role"] != "assistant"):
        return False
    before = messages[at - 1]
    if before["role"] == "assistant":
        return is_hosted(before["content"][-1])
    return bool(before["role"] == "user")


def _add_update(messages: list[Message], message: Message) -> None:
    """Join a directly preceding user message, else add a new one (O-19)."""
    update = blocks.text_block(system_update(message["content"][0]["text"]))
    if messages and messages[-1]["role"] == "user":
        messages[-1] = {"role": "user", "content": [*messages[-1]["content"], update]}
    else:
        messages.append({"role": "user", "content": [update]})
