"""A folded session as the messages and the state that a front end begins with. Pure."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

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
from ag_ui.core.types import (
    AudioPart,
    ContentPart,
    DataSource,
    DocumentPart,
    ImagePart,
    PartSource,
    TextPart,
    UrlSource,
    VideoPart,
)

from fairlead_gateway.ag_ui_view.translation.message_ids import (
    SHELL,
    model_name,
    output_text,
    reasoning_id,
    result_id,
    text_id,
)
from fairlead_schema import message as ours
from fairlead_schema.attachments.reference import attachment_id
from fairlead_schema.prompt import PromptFile
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.tools.content import CompletedCall, FailedCall, PendingCall
from fairlead_session.state.session import Session

Json: TypeAlias = dict[str, Any]

_PARTS: Final[Mapping[str, type[ImagePart | AudioPart | VideoPart | DocumentPart]]] = {
    "image": ImagePart,
    "audio": AudioPart,
    "video": VideoPart,
}


def view_messages(messages: Iterable[ours.Message], session_id: str) -> list[Message]:
    """The messages of a thread. What is still being written comes with the events of the run."""
    viewed: list[Message] = []
    for message in messages:
        match message:
            case ours.UserMessage():
                viewed.append(UserMessage(id=message.id, content=_view_prompt(message, session_id)))
            case ours.SyntheticMessage():
                viewed.append(UserMessage(id=message.id, content=message.text))
            case ours.ShellMessage():
                viewed += _view_shell(message)
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


def _view_prompt(message: ours.UserMessage, session_id: str) -> str | list[ContentPart]:
    """The text of a prompt, and its files as parts."""
    if not message.files:
        return message.text
    texts = [TextPart(text=message.text)] if message.text else []
    return [*texts, *(_view_file(file, session_id) for file in message.files)]


def _view_file(file: PromptFile, session_id: str) -> ContentPart:
    head, _, data = file.uri.partition(",")
    source: PartSource = UrlSource(value=file.uri, mime_type=file.mime)
    if head.startswith("data:") and head.endswith(";base64"):
        source = DataSource(value=data, mime_type=file.mime)
    elif id_ := attachment_id(file.uri):
        path = f"/api/session/{session_id}/attachment/{id_}"
        source = UrlSource(value=path, mime_type=file.mime)
    part = _PARTS.get(file.mime.partition("/")[0], DocumentPart)
    return part(source=source, metadata=None if file.name is None else {"name": file.name})


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
    called = _view_input(message_id, block.id, block.name, state.input)
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


def _view_shell(message: ours.ShellMessage) -> list[Message]:
    """A person's own command, as the call that it is."""
    id_ = message.call_id
    called = _view_input(message.id, id_, SHELL, {"command": message.command})
    return [called, ToolMessage(id=result_id(id_), tool_call_id=id_, content=message.output)]


def _view_input(message_id: str, call_id: str, name: str, given: Json) -> AssistantMessage:
    function = FunctionCall(name=name, arguments=json.dumps(given))
    call = ToolCall(id=call_id, type="function", function=function)
    return AssistantMessage(id=f"{message_id}.call.{call_id}", tool_calls=[call])
