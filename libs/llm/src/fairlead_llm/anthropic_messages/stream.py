"""From Messages API frames to canonical events.

Blocks name their own ends; usage and the stop reason come in deltas of the message, perhaps several,
so the step finishes only at `message_stop`. Frames are read by their JSON, never by their event name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from fairlead_llm import failure
from fairlead_llm.anthropic_messages import open_block, usage
from fairlead_llm.anthropic_messages.open_block import Events, Open
from fairlead_llm.json_reader import loaded
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
class State:
    """What the frames so far have opened, and what they said about the message."""

    open: tuple[Open, ...] = ()
    blocks: int = 0
    awaited: frozenset[str] = frozenset()
    called: bool = False
    message: dict[str, Any] | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    end: dict[str, Any] = field(default_factory=dict)
    ended: bool = False


Step: TypeAlias = tuple[State, Events]


def start() -> State:
    return State()


def step(state: State, frame: Frame) -> Step:
    """Take one frame. Nothing follows a StepFinish or a ProviderFailure."""
    if state.ended:
        return state, ()
    try:
        event = loaded(frame.data)
    except ValueError as error:
        return _malformed(state, f"A frame is not JSON: {error}")
    if not isinstance(event, dict):
        return _malformed(state, "A frame is not a JSON object")
    if event.get("error"):
        text = frame.data.decode(errors="replace")
        return replace(state, ended=True), (failure.broken(event["error"], text),)
    handler = _HANDLERS.get(str(event.get("type")))
    if handler is None:
        return state, ()
    try:
        return handler(state, event)
    except (AttributeError, KeyError, TypeError) as error:
        # The shape of a frame is the provider's word: a wrong one must not break us.
        return _malformed(state, f"A {event['type']} has an unexpected shape: {error!r}")


def finish(state: State) -> Events:
    """A body that ends without its end marker was cut, however cleanly it was closed."""
    if state.ended:
        return ()
    return (failure.failed("stream-truncated", "The stream ended before message_stop"),)


def _started(state: State, event: dict[str, Any]) -> Step:
    """A message begins. Gateways repeat this, or restart an answer in the middle of another."""
    message = event["message"]
    if state.message is not None and state.message.get("id") == message.get("id"):
        return state, ()
    state, events = _closed(state, complete=False)
    known = {name: message[name] for name in ("id", "model") if message.get(name)}
    state = replace(state, message=known, usage=usage.merged({}, message.get("usage")), end={})
    for index, block in enumerate(message.get("content") or ()):
        state, begun = _begun(state, {"index": index, "content_block": block})
        state, ended = _ended(state, {"index": index})
        events = (*events, *begun, *ended)
    return state, events


def _begun(state: State, event: dict[str, Any]) -> Step:
    index = event["index"]
    before: Events = ()
    if any(block.index == index for block in state.open):
        state, before = _ended(state, event, complete=False)
    block, events = open_block.begun(index, event["content_block"], fallback=str(state.blocks))
    state = replace(state, open=(*state.open, block), blocks=state.blocks + 1)
    return state, (*before, *events)


def _continued(state: State, event: dict[str, Any]) -> Step:
    """The hot path: most deltas add text to the only block that is open."""
    index = event["index"]
    for at, block in enumerate(state.open):
        if block.index == index:
            grown, events = open_block.grown(block, event["delta"])
            if grown is not block:
                state = replace(state, open=(*state.open[:at], grown, *state.open[at + 1 :]))
            return state, events
    return _malformed(state, f"A delta is for block {index}, which is not open")


def _ended(state: State, event: dict[str, Any], *, complete: bool = True) -> Step:
    index = event["index"]
    block = next((one for one in state.open if one.index == index), None)
    if block is None:
        return state, ()
    events = open_block.ended(block, state.awaited, complete=complete)
    awaited, called = state.awaited, state.called
    if block.kind == "call":
        hosted = block.type != "tool_use"
        called = called or not hosted
        awaited = awaited | {block.id} if hosted else awaited
    elif block.kind == "opaque":
        awaited -= {block.whole.get("tool_use_id")}
    rest = tuple(one for one in state.open if one is not block)
    return replace(state, open=rest, awaited=awaited, called=called), events


def _noted(state: State, event: dict[str, Any]) -> Step:
    """The message changed at its top: why it stops, and what it used so far."""
    said = event.get("delta") or {}
    end = {name: value for name, value in said.items() if value is not None}
    if event.get("context_management"):
        end["context_management"] = event["context_management"]
    counted = usage.merged(state.usage, event.get("usage"))
    return replace(state, end=state.end | end, usage=counted), ()


def _stopped(state: State, _event: dict[str, Any]) -> Step:
    state, events = _closed(state, complete=True)
    reason = state.end.get("stop_reason")
    if reason == "model_context_window_exceeded" and not state.blocks:
        full = failure.broken({"type": reason, "message": "The context window is full"}, "")
        return replace(state, ended=True), (full,)
    metadata = {**(state.message or {}), **state.end}
    if state.usage:
        metadata["usage"] = state.usage
    end = StepFinish(_reason(state), usage.disjoint(state.usage), metadata or None)
    return replace(state, ended=True), (*events, end)


def _closed(state: State, *, complete: bool) -> Step:
    """End every block that is still open, in order."""
    events: Events = ()
    for block in state.open:
        state, ended = _ended(state, {"index": block.index}, complete=complete)
        events = (*events, *ended)
    return state, events


def _reason(state: State) -> Finish:
    """An answer with local calls wants their results, whatever a gateway calls its end."""
    reason = state.end.get("stop_reason")
    if state.called and reason in {None, "end_turn", "stop_sequence"}:
        return "tool-calls"
    return _FINISHES.get(reason, "unknown")


def _malformed(state: State, message: str) -> Step:
    return replace(state, ended=True), (failure.failed("malformed-stream", message),)


_HANDLERS: Mapping[str, Callable[[State, dict[str, Any]], Step]] = {
    "content_block_delta": _continued,
    "content_block_start": _begun,
    "content_block_stop": _ended,
    "message_start": _started,
    "message_delta": _noted,
    "message_stop": _stopped,
}
