"""Lowering: session history becomes turns that every provider protocol can send."""

import json
from typing import Any, assert_never

from fairlead_schema.catalog import ModelRef
from fairlead_schema.message import (
    AgentSwitchedMessage,
    AssistantMessage,
    CompactionMessage,
    Content,
    Message,
    ModelSwitchedMessage,
    ReasoningBlock,
    ShellMessage,
    SyntheticMessage,
    SystemMessage,
    TextBlock,
    ToolBlock,
    UserMessage,
)
from fairlead_schema.provider.request import (
    AssistantTurn,
    ReasoningPart,
    SystemTurn,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)
from fairlead_schema.tools.content import (
    CompletedCall,
    FailedCall,
    PendingCall,
    RunningCall,
    ToolContent,
)
from fairlead_session.hosted.provider_secrets import remove_provider_secrets
from fairlead_session.hosted.results import (
    is_hosted,
    lowered_hidden_text,
    lowered_result,
    result_metadata,
)
from fairlead_session.media.attachment_parts import attachment_parts
from fairlead_session.media.file_part import file_part

AssistantPart = TextPart | ReasoningPart | ToolCallPart | ToolResultPart


def lower(messages: tuple[Message, ...], model: ModelRef) -> tuple[Turn, ...]:
    """The turns of a request to `model`."""
    return tuple(turn for message in messages for turn in _turns(message, model))


def _turns(message: Message, model: ModelRef) -> tuple[Turn, ...]:
    match message:
        case AgentSwitchedMessage() | ModelSwitchedMessage():
            return ()
        case UserMessage():
            files = (part for file in message.files or () for part in attachment_parts(file))
            return (UserTurn((TextPart(message.text), *files)),)
        case SyntheticMessage():
            return (UserTurn((TextPart(message.text),)),)
        case ShellMessage():
            text = f"$ {message.command}\n{message.output}"
            return (UserTurn((TextPart(text),)),)
        case SystemMessage():
            return (SystemTurn(message.text),)
        case CompactionMessage():
            return (UserTurn((TextPart(_checkpoint(message)),)),)
        case AssistantMessage():
            return _assistant(message, model)
        case _:
            assert_never(message)


def _checkpoint(message: CompactionMessage) -> str:
    return (
        "This is a record of the conversation so far, not a new request.\n"
        f"<summary>\n{message.summary}\n</summary>\n"
        f"<recent>\n{message.recent}\n</recent>"
    )


def _assistant(message: AssistantMessage, model: ModelRef) -> tuple[Turn, ...]:
    same = (message.model.provider_id, message.model.id) == (model.provider_id, model.id)
    keep = same and message.error is None
    parts = tuple(part for block in message.content for part in _parts(block, same=same, keep=keep))
    results = tuple(
        ToolTurn(result)
        for block in message.content
        if isinstance(block, ToolBlock) and not is_hosted(block)
        for result in _result(block, keep=keep)
    )
    return (AssistantTurn(parts), *results) if parts else ()


def _parts(block: Content, *, same: bool, keep: bool) -> tuple[AssistantPart, ...]:
    match block:
        case TextBlock(text=text, provider_metadata=metadata):
            return (TextPart(text, metadata if keep else None),) if text else ()
        case ReasoningBlock(text=text, provider_metadata=metadata):
            if not same:
                told = text or lowered_hidden_text(metadata)
                return (TextPart(told),) if told else ()
            sent = metadata if keep else None
            return (ReasoningPart(text, sent),) if text or sent else ()
        case ToolBlock():
            metadata = block.provider.metadata if keep and block.provider else None
            hosted = is_hosted(block)
            input_ = (
                remove_provider_secrets(_input(block)) if hosted and not keep else _input(block)
            )
            call = ToolCallPart(block.id, block.name, input_, hosted, metadata)
            return (call, *_result(block, keep=keep)) if hosted else (call,)
        case _:
            assert_never(block)


def _input(block: ToolBlock) -> object:
    if not isinstance(block.state, PendingCall):
        return block.state.input
    try:
        return json.loads(block.state.input)
    except (ValueError, RecursionError):
        return block.state.input


def _result(block: ToolBlock, *, keep: bool) -> tuple[ToolResultPart, ...]:
    """The result of a settled call. An open call has none."""
    metadata = result_metadata(block) if keep else None
    match block.state:
        case PendingCall() | RunningCall():
            return ()
        case CompletedCall(result=native) if is_hosted(block) and native is not None and not keep:
            kind, value = _lowered_value(block, native)
        case CompletedCall() as done:
            kind, value = _value(done, hosted=is_hosted(block))
        case FailedCall() as failed:
            error = {
                "error": failed.error.message,
                "content": [_content(item) for item in failed.content],
                "structured": failed.structured,
            }
            if failed.error.outcome is not None:
                error["outcome"] = failed.error.outcome
            kind, value = "error", error
        case _:
            assert_never(block.state)
    if is_hosted(block) and not keep:
        value = remove_provider_secrets(value)
    return (ToolResultPart(block.id, block.name, kind, value, metadata),)


def _lowered_value(block: ToolBlock, native: object) -> tuple[Any, object]:
    value = lowered_result(block, native)
    return "text" if isinstance(value, str) else "json", value


def _value(done: CompletedCall, *, hosted: bool) -> tuple[Any, Any]:
    """One text is sent as text, no content as the structured value, all else as content."""
    if hosted and done.result is not None:
        return "json", done.result
    if not done.content:
        return "json", done.structured
    parts = [_content(item) for item in done.content]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return "text", parts[0]["text"]
    return "content", parts


def _content(item: ToolContent) -> dict[str, Any]:
    """The output of a tool in its recorded form, with files in the form of a request."""
    if item.type == "text":
        return item.wire()
    part = file_part(item.uri, item.mime, item.name)
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return item.wire() | {"uri": part.uri, "mime": part.mime}
