"""The transcript: which messages an event creates or revises. One rule for the fold and for rows."""

from typing import Protocol, TypeAlias, assert_never

from fairlead_schema.events import (
    AgentSwitched,
    CompactionEnded,
    ContextUpdated,
    ModelSwitched,
    PromptPromoted,
    ReasoningEnded,
    ReasoningStarted,
    SessionEvent,
    ShellEnded,
    ShellStarted,
    StepEnded,
    StepFailed,
    StepStarted,
    SyntheticAdded,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolProgressed,
    ToolSucceeded,
)
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.message import (
    AgentSwitchedMessage,
    AssistantMessage,
    CallSpan,
    CompactionMessage,
    Content,
    CreationTime,
    FileSnapshot,
    Message,
    ModelSwitchedMessage,
    ReasoningBlock,
    ShellMessage,
    Span,
    SyntheticMessage,
    SystemMessage,
    TextBlock,
    ToolBlock,
    UserMessage,
)
from fairlead_schema.record import Recorded
from fairlead_schema.tools.content import (
    CallExecutor,
    CompletedCall,
    Executor,
    FailedCall,
    PendingCall,
    RunningCall,
)


class Known(Protocol):
    """The messages of one session, wherever their reader keeps them."""

    def find(self, message_id: MessageId) -> Message | None:
        """The message with that id, if the session has it."""
        ...

    def open_assistant(self) -> AssistantMessage | None:
        """The newest assistant message, if no step has completed it."""
        ...


_AssistantEvent: TypeAlias = (
    StepEnded
    | StepFailed
    | TextStarted
    | TextEnded
    | ReasoningStarted
    | ReasoningEnded
    | ToolInputStarted
    | ToolInputEnded
    | ToolCalled
    | ToolProgressed
    | ToolSucceeded
    | ToolFailed
)


def revise(session_id: SessionId, recorded: Recorded, known: Known) -> tuple[Message, ...]:
    """The messages this event creates or changes, oldest first; usually none or one."""
    event, at = recorded.event, recorded.time
    match event:
        case StepStarted():
            abandoned = known.open_assistant()
            begun = _begun(event, at)
            return (begun,) if abandoned is None else (_closed(abandoned, at), begun)
        case ShellEnded():
            shell = known.find(event.message_id)
            return (_ended(shell, event, at),) if isinstance(shell, ShellMessage) else ()
        case (
            StepEnded()
            | StepFailed()
            | TextStarted()
            | TextEnded()
            | ReasoningStarted()
            | ReasoningEnded()
            | ToolInputStarted()
            | ToolInputEnded()
            | ToolCalled()
            | ToolProgressed()
            | ToolSucceeded()
            | ToolFailed()
        ):
            owner = known.find(event.assistant_message_id)
            return (_revised(owner, event, at),) if isinstance(owner, AssistantMessage) else ()
        case _:
            made = _made(session_id, event, at)
            return () if made is None else (made,)


def _made(session_id: SessionId, event: SessionEvent, at: int) -> Message | None:
    """The message an event creates on its own."""
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


def _begun(event: StepStarted, at: int) -> AssistantMessage:
    return AssistantMessage(
        id=event.assistant_message_id,
        agent=event.agent,
        model=event.model,
        snapshot=None if event.snapshot is None else FileSnapshot(start=event.snapshot),
        time=Span(created=at),
    )


def _closed(assistant: AssistantMessage, at: int) -> AssistantMessage:
    return assistant.model_copy(update={"time": Span(created=assistant.time.created, completed=at)})


def _ended(shell: ShellMessage, event: ShellEnded, at: int) -> ShellMessage:
    time = Span(created=shell.time.created, completed=at)
    return shell.model_copy(update={"output": event.output, "time": time})


def _revised(owner: AssistantMessage, event: _AssistantEvent, at: int) -> AssistantMessage:
    match event:
        case StepEnded():
            return _step_ended(owner, event, at)
        case StepFailed():
            time = Span(created=owner.time.created, completed=at)
            return owner.model_copy(update={"finish": "error", "error": event.error, "time": time})
        case TextStarted() | ReasoningStarted() | ToolInputStarted():
            return _with_content(owner, (*owner.content, _block(event, at)))
        case _:
            return _with_content(owner, _changed(owner.content, event, at))


def _step_ended(owner: AssistantMessage, event: StepEnded, at: int) -> AssistantMessage:
    start = owner.snapshot.start if owner.snapshot else None
    snapshot = FileSnapshot(start=start, end=event.snapshot, files=event.files)
    return owner.model_copy(
        update={
            "finish": event.finish,
            "cost": event.cost,
            "tokens": event.tokens,
            "snapshot": snapshot if snapshot != FileSnapshot() else None,
            "time": Span(created=owner.time.created, completed=at),
        }
    )


def _with_content(owner: AssistantMessage, content: tuple[Content, ...]) -> AssistantMessage:
    return owner.model_copy(update={"content": content})


def _block(event: TextStarted | ReasoningStarted | ToolInputStarted, at: int) -> Content:
    match event:
        case TextStarted():
            return TextBlock(id=event.text_id, text="")
        case ReasoningStarted():
            return ReasoningBlock(
                id=event.reasoning_id,
                text="",
                provider_metadata=event.provider_metadata,
                time=Span(created=at),
            )
        case ToolInputStarted():
            return ToolBlock(
                id=event.call_id, name=event.name, state=PendingCall(), time=CallSpan(created=at)
            )
        case _:
            assert_never(event)


_BlockEvent: TypeAlias = (
    TextEnded
    | ReasoningEnded
    | ToolInputEnded
    | ToolCalled
    | ToolProgressed
    | ToolSucceeded
    | ToolFailed
)


def _changed(content: tuple[Content, ...], event: _BlockEvent, at: int) -> tuple[Content, ...]:
    """Change the last block with the event's id; an event for a missing block changes nothing."""
    wanted = _block_key(event)
    for index in range(len(content) - 1, -1, -1):
        block = content[index]
        if (block.type, block.id) == wanted:
            changed = _changed_block(block, event, at)
            return (*content[:index], changed, *content[index + 1 :])
    return content


def _block_key(event: _BlockEvent) -> tuple[str, str]:
    match event:
        case TextEnded():
            return "text", event.text_id
        case ReasoningEnded():
            return "reasoning", event.reasoning_id
        case _:
            return "tool", event.call_id


def _changed_block(block: Content, event: _BlockEvent, at: int) -> Content:
    match block, event:
        case TextBlock(), TextEnded():
            update = {"text": event.text, "provider_metadata": event.provider_metadata}
            return block.model_copy(update=update)
        case ReasoningBlock(), ReasoningEnded():
            metadata = event.provider_metadata or block.provider_metadata
            created = block.time.created if block.time else at
            time = Span(created=created, completed=at)
            return block.model_copy(
                update={"text": event.text, "provider_metadata": metadata, "time": time}
            )
        case ToolBlock(), (
            ToolInputEnded() | ToolCalled() | ToolProgressed() | ToolSucceeded() | ToolFailed()
        ):
            return _changed_call(block, event, at)
        case _:
            return block


def _changed_call(
    block: ToolBlock,
    event: ToolInputEnded | ToolCalled | ToolProgressed | ToolSucceeded | ToolFailed,
    at: int,
) -> ToolBlock:
    """Move a call through its states; a second settlement, or one out of order, changes nothing."""
    state = block.state
    match event, state:
        case ToolInputEnded(), PendingCall():
            return block.model_copy(update={"state": PendingCall(input=event.text)})
        case ToolCalled(), PendingCall():
            time = block.time.model_copy(update={"ran": at})
            provider = CallExecutor(
                executed=event.provider.executed, metadata=event.provider.metadata
            )
            running = RunningCall(input=event.input)
            return block.model_copy(update={"state": running, "provider": provider, "time": time})
        case ToolProgressed(), RunningCall():
            running = state.model_copy(
                update={"structured": event.structured, "content": event.content}
            )
            return block.model_copy(update={"state": running})
        case ToolSucceeded(), RunningCall():
            completed = CompletedCall(
                input=state.input,
                structured=event.structured,
                content=event.content,
                output_paths=event.output_paths,
                result=event.result,
            )
            return _settled(block, completed, event.provider, at)
        case ToolFailed(), PendingCall() | RunningCall():
            return _settled(block, _failed(state, event), event.provider, at)
        case _:
            return block


def _failed(state: PendingCall | RunningCall, event: ToolFailed) -> FailedCall:
    if isinstance(state, PendingCall):
        return FailedCall(error=event.error, result=event.result)
    return FailedCall(
        input=state.input,
        structured=state.structured,
        content=state.content,
        error=event.error,
        result=event.result,
    )


def _settled(
    block: ToolBlock, state: CompletedCall | FailedCall, by: Executor, at: int
) -> ToolBlock:
    called = block.provider or CallExecutor()
    provider = CallExecutor(
        executed=called.executed or by.executed,
        metadata=called.metadata,
        result_metadata=by.metadata,
    )
    time = block.time.model_copy(update={"completed": at})
    return block.model_copy(update={"state": state, "provider": provider, "time": time})
