"""The messages that an event creates or revises. The fold and the projector share these rules."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias, get_args

from fairlead_schema.events import (
    AgentSwitched,
    CompactionEnded,
    ContextUpdated,
    ModelSwitched,
    PromptPromoted,
    ShellEnded,
    ShellStarted,
    StepEnded,
    StepFailed,
    StepStarted,
    SyntheticAdded,
)
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.message import (
    AgentSwitchedMessage,
    AssistantMessage,
    CompactionMessage,
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
from fairlead_schema.provider.structured_output import OUTPUT_INVALID, StepOutput
from fairlead_schema.record import Recorded
from fairlead_schema.tools.content import ErrorInfo
from fairlead_session.fold.blocks import BlockChange, BlockStart, change_blocks, open_block
from fairlead_session.frozen import build_model, replace_fields


class MessageLookup(Protocol):
    """The messages of one session, wherever their reader keeps them."""

    def find(self, message_id: MessageId) -> Message | None:
        """The message with this id, if the session has it."""
        ...

    def open_assistant(self) -> AssistantMessage | None:
        """The newest assistant message, if no step has completed it."""
        ...


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
RevisingEvent: TypeAlias = StepEnded | StepFailed | BlockStart | BlockChange | ShellEnded
MessageEvent: TypeAlias = CreatingEvent | RevisingEvent


def revise(
    session_id: SessionId, recorded: Recorded, messages: MessageLookup
) -> tuple[Message, ...]:
    """The messages that this event creates or changes, oldest first; usually none or one."""
    event: Any = recorded.event
    kind, at = type(event), recorded.time
    if (change := CHANGES.get(kind)) is not None:
        message = messages.find(event.assistant_message_id)
        if not isinstance(message, AssistantMessage):
            return ()
        return (change(message, event, at),)
    if (create := CREATIONS.get(kind)) is not None:
        return (create(session_id, event, at),)
    if kind is StepStarted:
        return _start_step(messages, event, at)
    if kind is ShellEnded:
        return _end_shell(messages, event, at)
    return ()


def _promote(session_id: SessionId, event: PromptPromoted, _at: int) -> Message:
    prompt = event.prompt
    if prompt.synthetic:
        return SyntheticMessage(
            id=event.message_id,
            session_id=session_id,
            text=prompt.text,
            time=CreationTime(created=event.created),
        )
    return build_model(
        UserMessage,
        id=event.message_id,
        text=prompt.text,
        files=prompt.files,
        agents=prompt.agents,
        system=prompt.system,
        model=prompt.model,
        agent=prompt.agent,
        tools=prompt.tools,
        output_schema=prompt.output_schema,
        time=build_model(CreationTime, created=event.created),
    )


def _switch_agent(_session_id: SessionId, event: AgentSwitched, at: int) -> AgentSwitchedMessage:
    time = CreationTime(created=at)
    return AgentSwitchedMessage(id=event.message_id, agent=event.agent, time=time)


def _switch_model(_session_id: SessionId, event: ModelSwitched, at: int) -> ModelSwitchedMessage:
    time = CreationTime(created=at)
    return ModelSwitchedMessage(id=event.message_id, model=event.model, time=time)


def _update_context(_session_id: SessionId, event: ContextUpdated, at: int) -> SystemMessage:
    return SystemMessage(id=event.message_id, text=event.text, time=CreationTime(created=at))


def _add_synthetic(session_id: SessionId, event: SyntheticAdded, at: int) -> SyntheticMessage:
    time = CreationTime(created=at)
    return SyntheticMessage(id=event.message_id, session_id=session_id, text=event.text, time=time)


def _start_shell(_session_id: SessionId, event: ShellStarted, at: int) -> ShellMessage:
    return ShellMessage(
        id=event.message_id,
        call_id=event.call_id,
        command=event.command,
        output="",
        time=Span(created=at),
    )


def _compact(_session_id: SessionId, event: CompactionEnded, at: int) -> CompactionMessage:
    return CompactionMessage(
        id=event.message_id,
        reason=event.reason,
        summary=event.text,
        recent=event.recent,
        time=CreationTime(created=at),
    )


def _start_step(messages: MessageLookup, event: StepStarted, at: int) -> tuple[Message, ...]:
    """A new step also completes the assistant message that an earlier step left open."""
    opened = build_model(
        AssistantMessage,
        id=event.assistant_message_id,
        agent=event.agent,
        model=event.model,
        snapshot=None if event.snapshot is None else FileSnapshot(start=event.snapshot),
        time=build_model(Span, created=at),
    )
    left_open = messages.open_assistant()
    if left_open is None:
        return (opened,)
    completed = replace_fields(left_open, time=replace_fields(left_open.time, completed=at))
    return (completed, opened)


def _end_shell(messages: MessageLookup, event: ShellEnded, at: int) -> tuple[Message, ...]:
    shell = messages.find(event.message_id)
    if not isinstance(shell, ShellMessage):
        return ()
    time = replace_fields(shell.time, completed=at)
    return (replace_fields(shell, output=event.output, exit=event.exit, time=time),)


def _end_step(message: AssistantMessage, event: StepEnded, at: int) -> AssistantMessage:
    return replace_fields(
        message,
        finish=event.finish,
        cost=event.cost,
        tokens=event.tokens,
        output=event.output,
        error=_output_error(event.output),
        snapshot=_file_snapshot(message, event),
        time=replace_fields(message.time, completed=at),
    )


def _output_error(output: StepOutput | None) -> ErrorInfo | None:
    """An answer that does not fit its schema after the last repair is a failure with a code."""
    if output is None or output.status != "failed":
        return None
    message = f"The answer does not fit its schema after {output.repairs} repairs: {output.error}"
    return ErrorInfo(message=message, code=OUTPUT_INVALID)


def _file_snapshot(message: AssistantMessage, event: StepEnded) -> FileSnapshot | None:
    start = message.snapshot.start if message.snapshot else None
    if start is None and event.snapshot is None and event.files is None:
        return None
    return FileSnapshot(start=start, end=event.snapshot, files=event.files)


def _fail_step(message: AssistantMessage, event: StepFailed, at: int) -> AssistantMessage:
    time = replace_fields(message.time, completed=at)
    return replace_fields(message, finish="error", error=event.error, time=time)


def _open_block(message: AssistantMessage, event: BlockStart, at: int) -> AssistantMessage:
    return replace_fields(message, content=(*message.content, open_block(event, at)))


def _change_block(message: AssistantMessage, event: BlockChange, at: int) -> AssistantMessage:
    return replace_fields(message, content=change_blocks(message.content, event, at))


CREATIONS: Final[Mapping[type, Callable[[SessionId, Any, int], Message]]] = {
    PromptPromoted: _promote,
    AgentSwitched: _switch_agent,
    ModelSwitched: _switch_model,
    ContextUpdated: _update_context,
    SyntheticAdded: _add_synthetic,
    ShellStarted: _start_shell,
    CompactionEnded: _compact,
}
"""Events that create a message on their own."""

CHANGES: Final[Mapping[type, Callable[[AssistantMessage, Any, int], AssistantMessage]]] = {
    StepEnded: _end_step,
    StepFailed: _fail_step,
    **dict.fromkeys(get_args(BlockStart), _open_block),
    **dict.fromkeys(get_args(BlockChange), _change_block),
}
"""Events that change the assistant message that they name."""
