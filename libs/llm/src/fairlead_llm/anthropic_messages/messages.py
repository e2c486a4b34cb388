"""The conversation as messages of the Messages API."""

from typing import Any, TypeAlias, assert_never

from fairlead_llm.anthropic_messages import blocks, native
from fairlead_llm.anthropic_messages.native import Block
from fairlead_llm.content import GO_ON, system_update
from fairlead_llm.errors import Unsendable
from fairlead_schema.provider.request import (
    AssistantTurn,
    ModelRequest,
    SystemTurn,
    ToolTurn,
    UserTurn,
)

Message: TypeAlias = dict[str, Any]

_SPOKEN = frozenset({"text", "thinking", "redacted_thinking"})


def messages(request: ModelRequest, *, native_system: bool) -> list[Message]:
    """Every turn in order; a turn with nothing to say is left out. Raises Unsendable.

    A chronological system message has a role of its own only for models that know it, and only in
    the places the wire allows; elsewhere it is user text (O-18 to O-20).
    """
    entries = _entries(request)
    sent: list[Message] = []
    for at, entry in enumerate(entries):
        if entry["role"] == "system" and not (native_system and _placed(entries, at)):
            _add_update(sent, entry)
        else:
            sent.append(entry)
    return sent


def continued(sent: list[Message]) -> list[Message]:
    """Words of the model cannot come last; work of its hosted tools that it paused must."""
    last = sent[-1] if sent else None
    if last is None or last["role"] != "assistant" or last["content"][-1]["type"] not in _SPOKEN:
        return sent
    return [*sent, {"role": "user", "content": [blocks.text(GO_ON)]}]


def _entries(request: ModelRequest) -> list[Message]:
    """The turns as messages, system messages still as themselves."""
    entries: list[Message] = []
    for turn in request.turns:
        match turn:
            case UserTurn():
                _add(entries, "user", blocks.user(turn.content))
            case AssistantTurn():
                said = blocks.assistant(turn)
                _add(entries, "assistant", said.blocks)
                _add(entries, "user", said.results)
            case ToolTurn():
                _add_result(entries, blocks.result(turn.result))
            case SystemTurn():
                _add(entries, "system", [blocks.text(turn.text)] if turn.text.strip() else [])
            case _:
                assert_never(turn)
    return entries


def _add(entries: list[Message], role: str, content: list[Block]) -> None:
    if content:
        entries.append({"role": role, "content": content})


def _add_result(entries: list[Message], result: Block) -> None:
    """All results of one answer share a message; nothing may stand before them (O-21)."""
    last = entries[-1] if entries else None
    if last is not None and last["role"] == "system":
        raise Unsendable("A system update stands between a tool call and its result")
    if last is not None and last["content"][0]["type"] == "tool_result":
        entries[-1] = {"role": "user", "content": [*last["content"], result]}
    else:
        entries.append({"role": "user", "content": [result]})


def _placed(entries: list[Message], at: int) -> bool:
    """After a user, a result or a hosted tool, and before an assistant or nothing (O-20)."""
    if at == 0 or (at + 1 < len(entries) and entries[at + 1]["role"] != "assistant"):
        return False
    before = entries[at - 1]
    if before["role"] == "assistant":
        return native.is_hosted(before["content"][-1])
    return bool(before["role"] == "user")


def _add_update(sent: list[Message], entry: Message) -> None:
    """Join a directly preceding user message, else open a new one (O-19)."""
    update = blocks.text(system_update(entry["content"][0]["text"]))
    if sent and sent[-1]["role"] == "user":
        sent[-1] = {"role": "user", "content": [*sent[-1]["content"], update]}
    else:
        sent.append({"role": "user", "content": [update]})
