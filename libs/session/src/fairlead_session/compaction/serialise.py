"""Serialisation: messages as plain text for the model that summarises them, one entry each."""

from typing import Final, assert_never

from pydantic_core import to_json

from fairlead_schema.attachments.reference import ATTACHMENT_PREFIX
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
from fairlead_schema.prompt import PromptFile
from fairlead_schema.tools.content import (
    CompletedCall,
    FailedCall,
    FileContent,
    PendingCall,
    RunningCall,
    TextContent,
)
from fairlead_session.hosted.results import is_hosted, lowered_result

BETWEEN: Final = "\n\n"


def entry(message: Message, *, excerpt: int) -> str:
    """The entry of a message. Empty for a message without content."""
    match message:
        case AgentSwitchedMessage() | ModelSwitchedMessage() | CompactionMessage():
            return ""
        case UserMessage():
            return "\n".join((f"[User]: {message.text}", *map(_file_line, message.files or ())))
        case SyntheticMessage():
            return f"[Synthetic]: {message.text}"
        case SystemMessage():
            return f"[System update]: {message.text}"
        case ShellMessage():
            return f"[Shell]: {message.command}\n{_shorten(message.output, excerpt)}"
        case AssistantMessage():
            return "\n".join(line for block in message.content for line in _lines(block, excerpt))
        case _:
            assert_never(message)


def join_entries(entries: tuple[str, ...]) -> str:
    """Entries with a blank line between them."""
    return BETWEEN.join(entries)


def _lines(block: Content, excerpt: int) -> tuple[str, ...]:
    match block:
        case TextBlock(text=text):
            return (f"[Assistant]: {text}",) if text else ()
        case ReasoningBlock(text=text):
            return (f"[Assistant reasoning]: {text}",) if text else ()
        case ToolBlock():
            return (f"[Tool call]: {block.name}({_input(block)})", *_outcome(block, excerpt))
        case _:
            assert_never(block)


def _input(block: ToolBlock) -> str:
    value = block.state.input
    return value if isinstance(value, str) else to_json(value).decode()


def _outcome(block: ToolBlock, excerpt: int) -> tuple[str, ...]:
    """The result or error of a settled call. An open call has neither."""
    match block.state:
        case CompletedCall() as done:
            return (f"[Tool result]: {_shorten(_output(block, done), excerpt)}",)
        case FailedCall() as failed:
            return (f"[Tool error]: {failed.error.message}",)
        case PendingCall() | RunningCall():
            return ()
        case _:
            assert_never(block.state)


def _output(block: ToolBlock, done: CompletedCall) -> str:
    """A hosted result as another model can read it, because a summary is for every model."""
    if is_hosted(block) and done.result is not None:
        lowered = lowered_result(block, done.result)
        return lowered if isinstance(lowered, str) else to_json(lowered).decode()
    if done.content:
        return "\n".join(map(_content_text, done.content))
    return to_json(done.structured).decode()


def _content_text(content: TextContent | FileContent) -> str:
    """A text as it is. A file by its type and name, because its data cannot be read."""
    if isinstance(content, TextContent):
        return content.text
    return f"[{content.mime}: {content.name}]" if content.name else f"[{content.mime}]"


def _file_line(file: PromptFile) -> str:
    is_content = file.uri.startswith(("data:", ATTACHMENT_PREFIX))
    name = file.name or ("" if is_content else file.uri)
    return f"[Attached {file.mime}: {name}]" if name else f"[Attached {file.mime}]"


def _shorten(text: str, excerpt: int) -> str:
    if len(text) <= excerpt:
        return text
    return f"{text[:excerpt]}\n[{len(text) - excerpt} more characters were left out]"
