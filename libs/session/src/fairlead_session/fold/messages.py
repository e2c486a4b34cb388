"""The messages that an event creates or revises. The fold and the projector share these rules."""

from typing import Final, Protocol, TypeAlias, get_args

from fairlead_schema.events import (
    AgentSwitched,
    CompactionEnded,
    ContextUpdated,
    ModelSwitched,
    PromptPromoted,
    ReasoningStarted,
    SessionEvent,
    ShellEnded,
    ShellStarted,
    StepEnded,
    StepFailed,
    StepStarted,
    SyntheticAdded,
    TextStarted,
    ToolInputStarted,
)
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.message import (
    AgentSwitchedMessage,
    AssistantMessage,
    CompactionMessage,
    Content,
    CreationTime,
    FileSnapshot,
    Message,
    ModelSwitchedMessage,
    ShellMessage,
    Span,
    SyntheticMessage,
    SystemMessage,
    UserMessage,
)
from fairlead_schema.record import Recorded
from fairlead_session.fold.blocks import BlockChange, BlockStart, change_blocks, open_block
from fairlead_session.frozen import replace_fields


class MessageLookup(Protocol):
    """The messages of one session, wherever their reader keeps them."""

    def find(self, message_id: MessageId) -> Message | None:
        """The message with this id, if the session has it."""
        ...

    def open_assistant(self) -> AssistantMessage | None:
        """The newest assistant message, if no step has completed it."""
        ...


_AssistantEvent: TypeAlias = StepEnded | StepFailed | BlockStart | BlockChange
CreatingEvent: TypeAlias = (
    PromptPromoted
    | AgentSwitched
    | ModelSwitched
    | ContextUpdated
    | SyntheticAdded
    | ShellStarted
    | CompactionEnded
    | StepStarted
)
RevisingEvent: TypeAlias = _AssistantEvent | ShellEnded
MessageEvent: TypeAlias = CreatingEvent | RevisingEvent

_CREATING: Final = frozenset(get_args(CreatingEvent))
_ASSISTANT: Final = frozenset(get_args(_AssistantEvent))


def revise(
    session_id: SessionId, recorded: Recorded, messages: MessageLookup
) -> tuple[Message, ...]:
    """The messages that this event creates or changes, oldest first; usually none or one."""
    event, at = recorded.event, recorded.time
    kind = type(event)
    if kind in _ASSISTANT:
        assert isinstance(event, _AssistantEvent)
        message = messages.find(event.assistant_message_id)
        if not isinstance(message, AssistantMessage):
            return ()
        return (_revise_assistant(message, event, at),)
    if kind not in _CREATING and kind is not ShellEnded:
        return ()
    match event:
        case StepStarted():
            left_open = messages.open_assistant()
            opened = _open_assistant(event, at)
            return (opened,) if left_open is None else (_complete(left_open, at), opened)
        case ShellEnded():
            shell = messages.find(event.message_id)
            return (_end_shell(shell, event, at),) if isinstance(shell, ShellMessage) else ()
        case _:
            created = _create(session_id, event, at)
            return () if created is None else (created,)


def _create(session_id: SessionId, event: SessionEvent, at: int) -> Message | None:
    """The message that an event creates on its own."""
    match event:
        case PromptPromoted(message_id=id_, prompt=prompt, created=created):
            return UserMessage(
                id=id_,
                text=prompt.text,
                files=prompt.files,
                agents=prompt.agents,
                time=CreationTime(created=created),
            )
        case AgentSwitched(message_id=id_, agent=agent):
            return AgentSwitchedMessage(id=id_, agent=agent, time=CreationTime(created=at))
        case ModelSwitched(message_id=id_, model=model):
            return ModelSwitchedMessage(id=id_, model=model, time=CreationTime(created=at))
        case ContextUpdated(message_id=id_, text=text):
            return SystemMessage(id=id_, text=text, time=CreationTime(created=at))
        case SyntheticAdded(message_id=id_, text=text):
            time = CreationTime(created=at)
            return SyntheticMessage(id=id_, session_id=session_id, text=text, time=time)
        case ShellStarted(message_id=id_, call_id=call, command=command):
            time = Span(created=at)
            return ShellMessage(id=id_, call_id=call, command=command, output="", time=time)
        case CompactionEnded(message_id=id_, reason=reason, text=summary, recent=recent):
            time = CreationTime(created=at)
            return CompactionMessage(
                id=id_, reason=reason, summary=summary, recent=recent, time=time
            )
        case _:
            return None


def _open_assistant(event: StepStarted, at: int) -> AssistantMessage:
    return AssistantMessage(
        id=event.assistant_message_id,
        agent=event.agent,
        model=event.model,
        snapshot=None if event.snapshot is None else FileSnapshot(start=event.snapshot),
        time=Span(created=at),
    )


def _complete(assistant: AssistantMessage, at: int) -> AssistantMessage:
    return replace_fields(assistant, time=replace_fields(assistant.time, completed=at))


def _end_shell(shell: ShellMessage, event: ShellEnded, at: int) -> ShellMessage:
    time = replace_fields(shell.time, completed=at)
    return replace_fields(shell, output=event.output, time=time)


def _revise_assistant(
    message: AssistantMessage, event: _AssistantEvent, at: int
) -> AssistantMessage:
    match event:
        case StepEnded():
            return _end_step(message, event, at)
        case StepFailed():
            time = replace_fields(message.time, completed=at)
            return replace_fields(message, finish="error", error=event.error, time=time)
        case TextStarted() | ReasoningStarted() | ToolInputStarted():
            return _with_content(message, (*message.content, open_block(event, at)))
        case _:
            return _with_content(message, change_blocks(message.content, event, at))


def _end_step(message: AssistantMessage, event: StepEnded, at: int) -> AssistantMessage:
    return replace_fields(
        message,
        finish=event.finish,
        cost=event.cost,
        tokens=event.tokens,
        snapshot=_file_snapshot(message, event),
        time=replace_fields(message.time, completed=at),
    )


def _file_snapshot(message: AssistantMessage, event: StepEnded) -> FileSnapshot | None:
    start = message.snapshot.start if message.snapshot else None
    if start is None and event.snapshot is None and event.files is None:
        return None
    return FileSnapshot(start=start, end=event.snapshot, files=event.files)


def _with_content(message: AssistantMessage, content: tuple[Content, ...]) -> AssistantMessage:
    return replace_fields(message, content=content)
