"""From Messages API frames to canonical events.

Blocks have end frames. Usage and the stop reason may come in several message deltas, so the step
finishes only at `message_stop`. The JSON of a frame decides, never its event name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from fairlead_llm import failure
from fairlead_llm.anthropic_messages import open_block, usage
from fairlead_llm.anthropic_messages.open_block import Events, OpenBlock
from fairlead_llm.json_reader import load_json
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import Finish, StepFinish

_FINISHES: Mapping[str | None, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
    "pause_turn": "pause",
}


@dataclass(frozen=True, slots=True)
class AnthropicState:
    """The open blocks, and the message, usage and end fields of the frames so far."""

    open_blocks: tuple[OpenBlock, ...] = ()
    block_count: int = 0
    open_hosted_calls: Mapping[str, int] = field(default_factory=dict)
    """The hosted calls without a result, with the index of their block."""
    has_local_calls: bool = False
    message: dict[str, Any] | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    end_fields: dict[str, Any] = field(default_factory=dict)
    ended: bool = False


Step: TypeAlias = tuple[AnthropicState, Events]


def start() -> AnthropicState:
    return AnthropicState()


def step(state: AnthropicState, frame: Frame) -> Step:
    """Read one frame. Nothing follows a StepFinish or a ProviderFailure."""
    if state.ended:
        return state, ()
    try:
        event = load_json(frame.data)
    except ValueError as error:
        return _fail_malformed(state, f"A frame is not JSON: {error}")
    if not isinstance(event, dict):
        return _fail_malformed(state, "A frame is not a JSON object")
    if event.get("error"):
        text = frame.data.decode(errors="replace")
        return replace(state, ended=True), (failure.stream_failure(event["error"], text),)
    handler = _HANDLERS.get(str(event.get("type")))
    if handler is None:
        return state, ()
    try:
        return handler(state, event)
    except (AttributeError, KeyError, TypeError) as error:
        # The provider controls the shape of a frame, so a wrong shape must not raise.
        return _fail_malformed(state, f"A {event['type']} has an unexpected shape: {error!r}")


def finish(state: AnthropicState) -> Events:
    """A body without its end marker is truncated, even if the connection closed cleanly."""
    if state.ended:
        return ()
    return (failure.new_failure("stream-truncated", "The stream ended before message_stop"),)


def _on_message_start(state: AnthropicState, event: dict[str, Any]) -> Step:
    """Begin a message. Gateways repeat this frame, or restart an answer in the middle."""
    message = event["message"]
    if state.message is not None and state.message.get("id") == message.get("id"):
        return state, ()
    state, events = _end_open_blocks(state, complete=False)
    identity = {name: message[name] for name in ("id", "model") if message.get(name)}
    report = usage.merge_reports({}, message.get("usage"))
    state = replace(state, message=identity, usage=report, end_fields={})
    for index, block in enumerate(message.get("content") or ()):
        state, start_events = _on_block_start(state, {"index": index, "content_block": block})
        state, end_events = _on_block_stop(state, {"index": index})
        events = (*events, *start_events, *end_events)
    return state, events


def _on_block_start(state: AnthropicState, event: dict[str, Any]) -> Step:
    index = event["index"]
    before: Events = ()
    if any(block.index == index for block in state.open_blocks):
        state, before = _on_block_stop(state, event, complete=False)
    block, events = open_block.begin(index, event["content_block"], fallback=str(state.block_count))
    state = replace(
        state, open_blocks=(*state.open_blocks, block), block_count=state.block_count + 1
    )
    return state, (*before, *events)


def _on_block_delta(state: AnthropicState, event: dict[str, Any]) -> Step:
    """The hot path: most deltas add text to the only block that is open."""
    index = event["index"]
    for at, block in enumerate(state.open_blocks):
        if block.index == index:
            after, events = open_block.apply_delta(block, event["delta"])
            if after is not block:
                blocks = (*state.open_blocks[:at], after, *state.open_blocks[at + 1 :])
                state = replace(state, open_blocks=blocks)
            return state, events
    return _fail_malformed(state, f"A delta is for block {index}, which is not open")


def _on_block_stop(state: AnthropicState, event: dict[str, Any], *, complete: bool = True) -> Step:
    index = event["index"]
    ending = next((block for block in state.open_blocks if block.index == index), None)
    if ending is None:
        return state, ()
    hosted_calls, has_local_calls = state.open_hosted_calls, state.has_local_calls
    events = open_block.end(ending, hosted_calls, complete=complete)
    if ending.kind == "call" and ending.type == "tool_use":
        has_local_calls = True
    elif ending.kind == "call":
        hosted_calls = {**hosted_calls, ending.id: ending.index}
    elif ending.kind == "opaque":
        answered = ending.raw.get("tool_use_id")
        hosted_calls = {id_: at for id_, at in hosted_calls.items() if id_ != answered}
    state = replace(
        state,
        open_blocks=tuple(block for block in state.open_blocks if block is not ending),
        open_hosted_calls=hosted_calls,
        has_local_calls=has_local_calls,
    )
    return state, events


def _on_message_delta(state: AnthropicState, event: dict[str, Any]) -> Step:
    """Read the stop reason and the usage so far."""
    delta = event.get("delta") or {}
    fields = {name: value for name, value in delta.items() if value is not None}
    if event.get("context_management"):
        fields["context_management"] = event["context_management"]
    report = usage.merge_reports(state.usage, event.get("usage"))
    return replace(state, end_fields=state.end_fields | fields, usage=report), ()


def _on_message_stop(state: AnthropicState, _event: dict[str, Any]) -> Step:
    state, events = _end_open_blocks(state, complete=True)
    reason = state.end_fields.get("stop_reason")
    if reason == "model_context_window_exceeded" and not state.block_count:
        error = {"type": reason, "message": "The context window is full"}
        return replace(state, ended=True), (failure.stream_failure(error, ""),)
    metadata = {**(state.message or {}), **state.end_fields}
    if state.usage:
        metadata["usage"] = state.usage
    end = StepFinish(_finish_reason(state), usage.read_usage(state.usage), metadata or None)
    return replace(state, ended=True), (*events, end)


def _end_open_blocks(state: AnthropicState, *, complete: bool) -> Step:
    """End every block that is still open, in order."""
    events: Events = ()
    for block in state.open_blocks:
        state, end_events = _on_block_stop(state, {"index": block.index}, complete=complete)
        events = (*events, *end_events)
    return state, events


def _finish_reason(state: AnthropicState) -> Finish:
    """An answer with local calls waits for their results, for any stop reason of a gateway."""
    reason = state.end_fields.get("stop_reason")
    if state.has_local_calls and reason in {None, "end_turn", "stop_sequence"}:
        return "tool-calls"
    return _FINISHES.get(reason, "unknown")


def _fail_malformed(state: AnthropicState, message: str) -> Step:
    return replace(state, ended=True), (failure.new_failure("malformed-stream", message),)


_HANDLERS: Mapping[str, Callable[[AnthropicState, dict[str, Any]], Step]] = {
    "content_block_delta": _on_block_delta,
    "content_block_start": _on_block_start,
    "content_block_stop": _on_block_stop,
    "message_start": _on_message_start,
    "message_delta": _on_message_delta,
    "message_stop": _on_message_stop,
}
