"""The blocks of an assistant message: text, reasoning and tool calls, from start to end."""

from typing import TypeAlias, assert_never

from fairlead_schema.events import (
    ReasoningEnded,
    ReasoningStarted,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolProgressed,
    ToolSucceeded,
)
from fairlead_schema.message import CallSpan, Content, ReasoningBlock, Span, TextBlock, ToolBlock
from fairlead_schema.tools.content import (
    CallExecutor,
    CompletedCall,
    Executor,
    FailedCall,
    PendingCall,
    RunningCall,
)
from fairlead_session.frozen import build_model, replace_fields

BlockStart: TypeAlias = TextStarted | ReasoningStarted | ToolInputStarted
BlockChange: TypeAlias = (
    TextEnded
    | ReasoningEnded
    | ToolInputEnded
    | ToolCalled
    | ToolProgressed
    | ToolSucceeded
    | ToolFailed
)


def open_block(event: BlockStart, at: int) -> Content:
    """The block that an event opens."""
    match event:
        case TextStarted():
            return build_model(TextBlock, id=event.text_id, text="")
        case ReasoningStarted():
            return build_model(
                ReasoningBlock,
                id=event.reasoning_id,
                text="",
                provider_metadata=event.provider_metadata,
                time=build_model(Span, created=at),
            )
        case ToolInputStarted():
            return build_model(
                ToolBlock,
                id=event.call_id,
                name=event.name,
                state=PendingCall(),
                time=build_model(CallSpan, created=at),
            )
        case _:
            assert_never(event)


def change_blocks(content: tuple[Content, ...], event: BlockChange, at: int) -> tuple[Content, ...]:
    """Change the last block with the event's id. An event for a missing block changes nothing."""
    key = _block_key(event)
    for index in range(len(content) - 1, -1, -1):
        block = content[index]
        if (block.type, block.id) == key:
            changed = _change_block(block, event, at)
            return (*content[:index], changed, *content[index + 1 :])
    return content


def _block_key(event: BlockChange) -> tuple[str, str]:
    match event:
        case TextEnded():
            return "text", event.text_id
        case ReasoningEnded():
            return "reasoning", event.reasoning_id
        case _:
            return "tool", event.call_id


def _change_block(block: Content, event: BlockChange, at: int) -> Content:
    match block, event:
        case TextBlock(), TextEnded():
            return replace_fields(block, text=event.text, provider_metadata=event.provider_metadata)
        case ReasoningBlock(), ReasoningEnded():
            metadata = event.provider_metadata or block.provider_metadata
            created = block.time.created if block.time else at
            time = build_model(Span, created=created, completed=at)
            return replace_fields(block, text=event.text, provider_metadata=metadata, time=time)
        case ToolBlock(), (
            ToolInputEnded() | ToolCalled() | ToolProgressed() | ToolSucceeded() | ToolFailed()
        ):
            return _change_call(block, event, at)
        case _:
            return block


def _change_call(
    block: ToolBlock,
    event: ToolInputEnded | ToolCalled | ToolProgressed | ToolSucceeded | ToolFailed,
    at: int,
) -> ToolBlock:
    """Move a call through its states. A second settlement, or an event out of order, changes nothing."""
    state = block.state
    match event, state:
        case ToolInputEnded(), PendingCall():
            return replace_fields(block, state=build_model(PendingCall, input=event.text))
        case ToolCalled(), PendingCall():
            time = replace_fields(block.time, ran=at)
            provider = build_model(
                CallExecutor, executed=event.provider.executed, metadata=event.provider.metadata
            )
            running = build_model(RunningCall, input=event.input)
            return replace_fields(block, state=running, provider=provider, time=time)
        case ToolProgressed(), RunningCall():
            progress = replace_fields(state, structured=event.structured, content=event.content)
            return replace_fields(block, state=progress)
        case ToolSucceeded(), RunningCall():
            completed = build_model(
                CompletedCall,
                input=state.input,
                structured=event.structured,
                content=event.content,
                output_paths=event.output_paths,
                result=event.result,
            )
            return _settle(block, completed, event.provider, at)
        case ToolFailed(), PendingCall() | RunningCall():
            return _settle(block, _failed_state(state, event), event.provider, at)
        case _:
            return block


def _failed_state(state: PendingCall | RunningCall, event: ToolFailed) -> FailedCall:
    if isinstance(state, PendingCall):
        return build_model(FailedCall, error=event.error, result=event.result)
    return build_model(
        FailedCall,
        input=state.input,
        structured=state.structured,
        content=state.content,
        error=event.error,
        result=event.result,
    )


def _settle(
    block: ToolBlock, state: CompletedCall | FailedCall, executor: Executor, at: int
) -> ToolBlock:
    called = block.provider or CallExecutor()
    provider = build_model(
        CallExecutor,
        executed=called.executed or executor.executed,
        metadata=called.metadata,
        result_metadata=executor.metadata,
    )
    time = replace_fields(block.time, completed=at)
    return replace_fields(block, state=state, provider=provider, time=time)
