"""Our messages as the terminal client's messages with their parts.

An id of a part follows from its place in the message, so that lists and events agree. The client sorts
messages by creation and parts by id.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fairlead_gateway.opencode_view.translation.message_fields import (
    Json,
    Setting,
    ViewedMessage,
    assistant_info,
    build_message,
    part_id,
    tokens_of,
    user_info,
)
from fairlead_gateway.opencode_view.translation.paired_messages import view_compaction, view_shell
from fairlead_gateway.opencode_view.translation.tool_part import is_declined, tool_part
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.ids import MessageId
from fairlead_schema.message import (
    AssistantMessage,
    CompactionMessage,
    Content,
    Message,
    ReasoningBlock,
    ShellMessage,
    TextBlock,
    ToolBlock,
    UserMessage,
)
from fairlead_schema.prompt import PromptFile, TextSpan
from fairlead_schema.tools.content import FailedCall
from fairlead_session.execution.recovery import INTERRUPTED_TOOL, INTERRUPTED_TURN

STEP_START: Final = 0
STEP_FINISH: Final = 99_999
ABORTED: Final[Json] = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}


class Author(NamedTuple):
    """The agent and the model of an answer."""

    agent: str
    model: ModelRef


class Neighbours(NamedTuple):
    """What the messages around a message say about it."""

    parent: MessageId | None = None
    """The prompt that an answer belongs to, or the summary that has replaced the prompt."""
    author: Author | None = None
    """Who answered a prompt. Nothing else says for whom a prompt was meant."""


def view_messages(messages: Sequence[Message], setting: Setting) -> Iterator[ViewedMessage]:
    """All messages, oldest first."""
    for message, around in with_neighbours(messages):
        yield from view_message(message, setting, around)


def with_neighbours(messages: Sequence[Message]) -> Iterator[tuple[Message, Neighbours]]:
    """Messages with their places, oldest first."""
    authors: list[Author | None] = []
    author: Author | None = None
    for message in reversed(messages):
        authors.append(author)
        if isinstance(message, AssistantMessage):
            author = Author(message.agent, message.model)
    parent: MessageId | None = None
    for message in messages:
        if isinstance(message, UserMessage | CompactionMessage):
            parent = message.id
        yield message, Neighbours(parent, authors.pop())


def view_message(
    message: Message, setting: Setting, around: Neighbours
) -> tuple[ViewedMessage, ...]:
    """One message; none if the client does not show it, two if the client needs two for it."""
    match message:
        case UserMessage():
            return (_user(message, setting, around.author),)
        case AssistantMessage():
            return (_assistant(message, setting, around.parent),)
        case CompactionMessage():
            return view_compaction(message, setting)
        case ShellMessage():
            return view_shell(message, setting)
        case _:
            return ()


def text_part_id(message: AssistantMessage, block_id: str) -> str | None:
    """The id of the part of a text block; None if the message has no such block."""
    for index, block in enumerate(message.content, 1):
        if block.id == block_id and not isinstance(block, ToolBlock):
            return part_id(message.id, index)
    return None


def _user(message: UserMessage, setting: Setting, author: Author | None) -> ViewedMessage:
    agent, model = author or Author(setting.agent, setting.model)
    info = user_info(
        message.id,
        message.time.created,
        setting,
        message.agent or agent,
        message.model or model,
    )
    parts: list[Json] = [{"type": "text", "text": message.text}]
    parts += [_file(file) for file in message.files or ()]
    parts += [
        {"type": "agent", "name": mention.name, **_source(mention.source)}
        for mention in message.agents or ()
    ]
    return build_message(info, enumerate(parts))


def _file(file: PromptFile) -> Json:
    """A file with its place in the text: without the place an undo would lose the file."""
    part: Json = {"type": "file", "mime": file.mime, "url": file.uri}
    if file.name is not None:
        part["filename"] = file.name
    if file.source is not None:
        text = _span(file.source)
        part["source"] = {"type": "file", "path": file.name or file.source.text, "text": text}
    return part


def _source(span: TextSpan | None) -> Json:
    return {} if span is None else {"source": _span(span)}


def _span(span: TextSpan) -> Json:
    return {"start": span.start, "end": span.end, "value": span.text}


def _assistant(message: AssistantMessage, setting: Setting, parent: str | None) -> ViewedMessage:
    info = assistant_info(message.id, message.time.created, setting, message.agent, message.model)
    if parent is not None:
        info["parentID"] = parent
    if message.tokens is not None:
        info |= {"tokens": tokens_of(message.tokens), "cost": message.cost or 0}
    if message.time.completed is not None:
        info["time"]["completed"] = message.time.completed
    if message.finish is not None:
        info["finish"] = message.finish
    if (error := _error(message)) is not None:
        info["error"] = error
    parts: list[tuple[int, Json]] = [(STEP_START, {"type": "step-start"})]
    parts += [
        (index, _block(message, block, setting)) for index, block in enumerate(message.content, 1)
    ]
    if message.tokens is not None:
        parts.append((STEP_FINISH, _step_finish(message, message.tokens)))
    return build_message(info, parts)


def _block(message: AssistantMessage, block: Content, setting: Setting) -> Json:
    created, is_over = message.time.created, message.time.completed is not None
    match block:
        case ToolBlock():
            return tool_part(block)
        case TextBlock():
            # The end must not move when the step ends: `run` would print the text again.
            end = {"end": created} if block.text or is_over else {}
            text = block.text or setting.texts.get((message.id, block.id), "")
            return {"type": "text", "text": text, "time": {"start": created, **end}}
        case ReasoningBlock():
            time = block.time
            start = created if time is None else time.created
            over = start if time is None else time.completed
            ended = {"end": over or start} if block.text or is_over else {}
            text = block.text or setting.texts.get((message.id, block.id), "")
            return {"type": "reasoning", "text": text, "time": {"start": start, **ended}}


def _error(message: AssistantMessage) -> Json | None:
    """Why the message ended. The stop after a decline is no interrupt: the call says what happened."""
    if message.error is not None:
        if message.error.message == INTERRUPTED_TURN:
            return ABORTED
        return {"name": "UnknownError", "data": {"message": message.error.message}}
    if message.time.completed is None:
        return None
    calls = [block for block in message.content if isinstance(block, ToolBlock)]
    stopped = any(
        isinstance(call.state, FailedCall) and call.state.error.message == INTERRUPTED_TOOL
        for call in calls
    )
    return ABORTED if stopped and not any(map(is_declined, calls)) else None


def _step_finish(message: AssistantMessage, tokens: Tokens) -> Json:
    return {
        "type": "step-finish",
        "reason": message.finish or "unknown",
        "cost": message.cost or 0,
        "tokens": tokens_of(tokens),
    }
