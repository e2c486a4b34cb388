"""From Chat Completions frames to canonical events.

The API sends no block ends. Text and reasoning end when the kind changes, tool calls end at the
first finish reason, and the step ends at `[DONE]`, because usage may follow the finish reason.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from fairlead_llm import failure
from fairlead_llm.json_reader import load_json
from fairlead_llm.openai_chat import calls, reasoning, usage
from fairlead_llm.openai_chat.calls import StreamingCall
from fairlead_llm.openai_chat.content import read_content
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


# What vendors say about an answer: pages, tools that they ran, marked passages.
_SOURCES = frozenset({"citations", "search_results", "executed_tools", "annotations"})
_GROWING = frozenset({"annotations", "executed_tools"})


@dataclass(frozen=True, slots=True)
class Block:
    """The open block of text or reasoning."""

    kind: Literal["text", "reasoning"]
    id: str
    field: str | None = None
    details: tuple[reasoning.Detail, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatState:
    """The open block and calls, and the answer, usage and finish reason of the frames so far."""

    block: Block | None = None
    block_count: int = 0
    calls: tuple[StreamingCall, ...] = ()
    call_count: int = 0
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None
    sources: dict[str, Any] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    ended: bool = False


Step: TypeAlias = tuple[ChatState, Events]


def start() -> ChatState:
    return ChatState()


def step(state: ChatState, frame: Frame) -> Step:
    """Read one frame. Nothing follows a StepFinish or a ProviderFailure."""
    if state.ended:
        return state, ()
    try:
        chunk = load_json(frame.data)
    except ValueError as error:
        if frame.data.strip() == b"[DONE]":
            return _finish_step(state)
        return _fail_malformed(state, f"A frame is not JSON: {error}")
    if not isinstance(chunk, dict):
        return _fail_malformed(state, "A frame is not a JSON object")
    if chunk.get("error"):
        text = frame.data.decode(errors="replace")
        return replace(state, ended=True), (failure.stream_failure(chunk["error"], text),)
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    if not isinstance(choice, dict):
        return _fail_malformed(state, "A choice is not a JSON object")
    return _read_choice(_note_sources(_note_answer(state, chunk), chunk), choice)


def finish(state: ChatState) -> Events:
    """A body without its end marker is truncated, even if the connection closed cleanly."""
    if state.ended:
        return ()
    return (failure.new_failure("stream-truncated", "The stream ended before its end marker"),)


def _note_answer(state: ChatState, chunk: dict[str, Any]) -> ChatState:
    """Note the id, model and usage of the chunk."""
    report = usage.latest_report(state.usage, chunk)
    if report is state.usage and state.answer is not None:
        return state
    answer = state.answer or {name: chunk[name] for name in ("id", "model") if chunk.get(name)}
    return replace(state, usage=report, answer=answer)


def _read_choice(state: ChatState, choice: dict[str, Any]) -> Step:
    events: Events = ()
    delta = choice.get("delta")
    if isinstance(delta, dict):
        state, events = _read_delta(state, delta)
    reason = choice.get("finish_reason")
    if not reason or state.finish_reason is not None:
        return state, events
    state, end_events = _close_all(replace(state, finish_reason=str(reason)))
    return state, (*events, *end_events)


def _read_delta(state: ChatState, delta: dict[str, Any]) -> Step:
    """The hot path: most deltas add text to the block that is open already."""
    events: Events = ()
    if delta.get("reasoning_content") or delta.get("reasoning") or delta.get("reasoning_details"):
        state, events = _add_reasoning(state, delta)
    content = delta.get("content") or delta.get("refusal")
    if content:
        state, content_events = _add_content(state, content)
        events += content_events
    state = _note_sources(state, delta)
    fragments = delta.get("tool_calls")
    if fragments and isinstance(fragments, list):
        state, call_events = _add_calls(state, fragments)
        events += call_events
    return state, events


def _add_content(state: ChatState, content: object) -> Step:
    events: Events = ()
    for kind, text in read_content(content):
        if kind == "unknown":
            state = replace(state, unread=(*state.unread, text))
            continue
        state, start_events = _open_block(state, kind)
        assert state.block is not None, "a block was just opened"
        chunk = TextChunk if kind == "text" else ReasoningChunk
        events = (*events, *start_events, chunk(state.block.id, text))
    return state, events


def _note_sources(state: ChatState, fields: dict[str, Any]) -> ChatState:
    """Keep what the provider says about its sources and its own tools, for the end of the step."""
    if _SOURCES.isdisjoint(fields):
        return state
    sources = {name: fields[name] for name in _SOURCES if isinstance(fields.get(name), list)}
    new = {name: items for name, items in sources.items() if items != state.sources.get(name)}
    if not new:
        return state
    # Sources of a chunk repeat the whole list. Annotations of a delta come one after another.
    grown = {
        name: [*state.sources.get(name, ()), *items] if name in _GROWING else items
        for name, items in new.items()
    }
    return replace(state, sources={**state.sources, **grown})


def _add_reasoning(state: ChatState, delta: dict[str, Any]) -> Step:
    field = next((name for name in reasoning.FIELDS if isinstance(delta.get(name), str)), None)
    raw = delta.get("reasoning_details")
    details = (
        [detail for detail in raw if isinstance(detail, dict)] if isinstance(raw, list) else []
    )
    text = (delta[field] if field else "") or reasoning.readable_text(details)
    if not text and not details:
        return state, ()
    state, start_events = _open_block(state, "reasoning")
    block = state.block
    assert block is not None, "a block was just opened"
    if details or block.field != field:
        merged = reasoning.merge_details((*block.details, *details))
        state = replace(state, block=replace(block, field=field or block.field, details=merged))
    return state, (*start_events, ReasoningChunk(block.id, text)) if text else start_events


def _open_block(state: ChatState, kind: Literal["text", "reasoning"]) -> Step:
    if state.block is not None and state.block.kind == kind:
        return state, ()
    block = Block(kind, f"{kind}-{state.block_count}")
    start_event = TextStart(block.id) if kind == "text" else ReasoningStart(block.id)
    events = (*_end_block(state.block), start_event)
    return replace(state, block=block, block_count=state.block_count + 1), events


def _end_block(block: Block | None) -> Events:
    if block is None:
        return ()
    if block.kind == "text":
        return (TextEnd(block.id),)
    return (ReasoningEnd(block.id, reasoning.metadata(block.field, block.details)),)


def _add_calls(state: ChatState, fragments: list[Any]) -> Step:
    end_events = _end_block(state.block)
    prefix = str((state.answer or {}).get("id", "call"))
    open_calls, events = calls.add_fragments(
        state.calls, fragments, mint_id=lambda n: f"{prefix}-{state.call_count + n}"
    )
    return replace(state, block=None, calls=open_calls), (*end_events, *events)


def _close_all(state: ChatState) -> Step:
    """End the open block and every open call."""
    call_events = tuple(event for call in state.calls for event in calls.end_call(call))
    events = (*_end_block(state.block), *call_events)
    call_count = state.call_count + len(state.calls)
    return replace(state, block=None, calls=(), call_count=call_count), events


def _finish_step(state: ChatState) -> Step:
    state, end_events = _close_all(state)
    if state.unread and not state.block_count and not state.call_count:
        kinds = ", ".join(dict.fromkeys(state.unread))
        return _fail_malformed(state, f"The answer has only content of unknown types: {kinds}")
    metadata = dict(state.answer or {}) | state.sources
    if state.unread:
        metadata["unread_content"] = list(dict.fromkeys(state.unread))
    if state.usage is not None:
        metadata["usage"] = state.usage
    if state.finish_reason is not None:
        metadata["finish_reason"] = state.finish_reason
    end = StepFinish(_finish_reason(state), usage.read_usage(state.usage), metadata or None)
    return replace(state, ended=True), (*end_events, end)


def _finish_reason(state: ChatState) -> Finish:
    """`stop` after tool calls means `tool-calls`: some vendors send `stop` for a forced tool."""
    if state.call_count and state.finish_reason in {None, "stop"}:
        return "tool-calls"
    return _FINISHES.get(state.finish_reason or "", "unknown")


def _fail_malformed(state: ChatState, message: str) -> Step:
    return replace(state, ended=True), (failure.new_failure("malformed-stream", message),)
