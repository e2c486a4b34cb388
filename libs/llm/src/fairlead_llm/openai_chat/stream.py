"""From Chat Completions frames to canonical events.

The wire has no ends of blocks: text and reasoning close when the kind changes, tool calls at the
first finish reason, and the step only at `[DONE]`, because usage may come after its reason.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from fairlead_llm import failure
from fairlead_llm.json_reader import loaded
from fairlead_llm.openai_chat import calls, reasoning, usage
from fairlead_llm.openai_chat.calls import Call
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import (
    Finish,
    ProviderEvent,
    ReasoningChunk,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    TextChunk,
    TextEnd,
    TextStart,
)

Events: TypeAlias = tuple[ProviderEvent, ...]

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
    "error": "error",
}


@dataclass(frozen=True, slots=True)
class Block:
    """The text or reasoning that is streaming now."""

    kind: Literal["text", "reasoning"]
    id: str
    field: str | None = None
    details: tuple[reasoning.Detail, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """What the frames so far have opened, and what they said about the end."""

    block: Block | None = None
    blocks: int = 0
    calls: tuple[Call, ...] = ()
    called: int = 0
    reason: str | None = None
    usage: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None
    ended: bool = False


def start() -> State:
    return State()


def step(state: State, frame: Frame) -> tuple[State, Events]:
    """Take one frame. Nothing follows a StepFinish or a ProviderFailure."""
    if state.ended:
        return state, ()
    try:
        chunk = loaded(frame.data)
    except ValueError as error:
        if frame.data.strip() == b"[DONE]":
            return _done(state)
        return _malformed(state, f"A frame is not JSON: {error}")
    if not isinstance(chunk, dict):
        return _malformed(state, "A frame is not a JSON object")
    if chunk.get("error"):
        text = frame.data.decode(errors="replace")
        return replace(state, ended=True), (failure.broken(chunk["error"], text),)
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    if not isinstance(choice, dict):
        return _malformed(state, "A choice is not a JSON object")
    return _chosen(_noted(state, chunk), choice)


def finish(state: State) -> Events:
    """A body that ends without its end marker was cut, however cleanly it was closed."""
    if state.ended:
        return ()
    return (failure.failed("stream-truncated", "The stream ended before its end marker"),)


def _noted(state: State, chunk: dict[str, Any]) -> State:
    """Remember what the chunk says beside its choice."""
    counted = usage.latest(state.usage, chunk)
    if counted is state.usage and state.answer is not None:
        return state
    answer = state.answer or {name: chunk[name] for name in ("id", "model") if chunk.get(name)}
    return replace(state, usage=counted, answer=answer)


def _chosen(state: State, choice: dict[str, Any]) -> tuple[State, Events]:
    events: Events = ()
    delta = choice.get("delta")
    if isinstance(delta, dict):
        state, events = _delta(state, delta)
    reason = choice.get("finish_reason")
    if not reason or state.reason is not None:
        return state, events
    state, closed = _closed(replace(state, reason=str(reason)))
    return state, (*events, *closed)


def _delta(state: State, delta: dict[str, Any]) -> tuple[State, Events]:
    """The hot path: most deltas add text to the block that is open already."""
    events: Events = ()
    if delta.get("reasoning_content") or delta.get("reasoning") or delta.get("reasoning_details"):
        state, events = _thought(state, delta)
    said = delta.get("content") or delta.get("refusal")
    if said and isinstance(said, str):
        state, opened = _opened(state, "text")
        assert state.block is not None, "a block was just opened"
        events = (*events, *opened, TextChunk(state.block.id, said))
    fragments = delta.get("tool_calls")
    if fragments and isinstance(fragments, list):
        state, made = _called(state, fragments)
        events += made
    return state, events


def _thought(state: State, delta: dict[str, Any]) -> tuple[State, Events]:
    field = next((name for name in reasoning.FIELDS if isinstance(delta.get(name), str)), None)
    given = delta.get("reasoning_details")
    details = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    text = (delta[field] if field else "") or reasoning.spoken(details)
    if not text and not details:
        return state, ()
    state, opened = _opened(state, "reasoning")
    block = state.block
    assert block is not None, "a block was just opened"
    if details or block.field != field:
        kept = reasoning.merged((*block.details, *details))
        state = replace(state, block=replace(block, field=field or block.field, details=kept))
    return state, (*opened, ReasoningChunk(block.id, text)) if text else opened


def _opened(state: State, kind: Literal["text", "reasoning"]) -> tuple[State, Events]:
    if state.block is not None and state.block.kind == kind:
        return state, ()
    block = Block(kind, f"{kind}-{state.blocks}")
    begun = TextStart(block.id) if kind == "text" else ReasoningStart(block.id)
    return replace(state, block=block, blocks=state.blocks + 1), (*_ends(state.block), begun)


def _ends(block: Block | None) -> Events:
    if block is None:
        return ()
    if block.kind == "text":
        return (TextEnd(block.id),)
    return (ReasoningEnd(block.id, reasoning.metadata(block.field, block.details)),)


def _called(state: State, fragments: list[Any]) -> tuple[State, Events]:
    closed = _ends(state.block)
    prefix = str((state.answer or {}).get("id", "call"))
    opened, events = calls.extended(
        state.calls, fragments, minted=lambda n: f"{prefix}-{state.called + n}"
    )
    return replace(state, block=None, calls=opened), (*closed, *events)


def _closed(state: State) -> tuple[State, Events]:
    """Close the block and finalise every call."""
    final = tuple(event for call in state.calls for event in calls.finalised(call))
    called = state.called + len(state.calls)
    return replace(state, block=None, calls=(), called=called), (*_ends(state.block), *final)


def _done(state: State) -> tuple[State, Events]:
    state, closed = _closed(state)
    metadata = dict(state.answer or {})
    if state.usage is not None:
        metadata["usage"] = state.usage
    if state.reason is not None:
        metadata["finish_reason"] = state.reason
    end = StepFinish(_reason(state), usage.disjoint(state.usage), metadata or None)
    return replace(state, ended=True), (*closed, end)


def _reason(state: State) -> Finish:
    """`stop` after tool calls means tool calls: some vendors say so when a tool was forced."""
    if state.called and state.reason in {None, "stop"}:
        return "tool-calls"
    return _FINISHES.get(state.reason or "", "unknown")


def _malformed(state: State, message: str) -> tuple[State, Events]:
    return replace(state, ended=True), (failure.failed("malformed-stream", message),)
