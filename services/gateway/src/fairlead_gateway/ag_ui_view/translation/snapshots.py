"""A folded session as the messages and the state that a front end begins with. Pure."""

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from ag_ui.core import (
    AssistantMessage,
    FunctionCall,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from fairlead_gateway.ag_ui_view.translation.message_ids import (
    model_name,
    output_text,
    reasoning_id,
    result_id,
    text_id,
)
from fairlead_schema import message as ours
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.tools.content import CompletedCall, FailedCall, PendingCall
from fairlead_session.state.session import Session

Json: TypeAlias = dict[str, Any]


def view_messages(messages: Iterable[ours.Message]) -> list[Message]:
    """The messages of a thread. What is still being written comes with the events of the run."""
    viewed: list[Message] = []
    for message in messages:
        match message:
            case ours.UserMessage():
                viewed.append(UserMessage(id=message.id, content=message.text))
            case ours.CompactionMessage():
                viewed.append(SystemMessage(id=message.id, content=message.summary))
            case ours.AssistantMessage():
                for block in message.content:
                    viewed += _view_block(message.id, block)
            case _:
                pass
    return viewed


def view_state(session: Session, info: SessionInfo) -> Json:
    """The state of a thread. `sessionID` is the name of the same session in our own API."""
    return {
        "sessionID": session.id,
        "title": info.title,
        "agent": info.agent,
        "model": None if info.model is None else model_name(info.model.wire()),
        "todos": [todo.wire() for todo in session.todos],
    }


def _view_block(message_id: str, block: ours.Content) -> list[Message]:
    match block:
        case ours.TextBlock():
            id_ = text_id(message_id, block.id)
            return [AssistantMessage(id=id_, content=block.text)] if block.text else []
        case ours.ReasoningBlock():
            id_ = reasoning_id(message_id, block.id)
            return [ReasoningMessage(id=id_, content=block.text)] if block.text else []
        case ours.ToolBlock():
            return _view_call(message_id, block)


def _view_call(message_id: str, block: ours.ToolBlock) -> list[Message]:
    state = block.state
    if isinstance(state, PendingCall):
        return []
    function = FunctionCall(name=block.name, arguments=json.dumps(state.input))
    call = ToolCall(id=block.id, type="function", function=function)
    called = AssistantMessage(id=f"{message_id}.call.{block.id}", tool_calls=[call])
    id_ = result_id(block.id)
    match state:
        case CompletedCall():
            text = output_text(item.wire() for item in state.content)
            return [called, ToolMessage(id=id_, tool_call_id=block.id, content=text)]
        case FailedCall():
            text = state.error.message
            return [called, ToolMessage(id=id_, tool_call_id=block.id, content=text, error=text)]
        case _:
            return [called]
