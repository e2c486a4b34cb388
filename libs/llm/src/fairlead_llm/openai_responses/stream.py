"""From Responses frames to canonical events."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import orjson

from fairlead_llm import failure
from fairlead_llm.json_reader import load_json
from fairlead_llm.openai_responses import native_calls, output
from fairlead_llm.openai_responses.answer_end import final_item, finish_step
from fairlead_llm.openai_responses.open_item import Events, OpenItem
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import TextChunk, ToolCall

Event: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ResponsesState:
    """The open items by output index, and the facts about the answer so far."""

    items: Mapping[int | None, OpenItem] = field(default_factory=dict)
    unanswered: Mapping[str, tuple[OpenItem, Event]] = field(default_factory=dict)
    """Hosted calls whose result is an item of its own, by call id, with the item of the call."""
    block_count: int = 0
    has_local_calls: bool = False
    answer_id: str = ""
    ended: bool = False


Step: TypeAlias = tuple[ResponsesState, Events]
Handler: TypeAlias = Callable[[ResponsesState, Event], Step]


def start() -> ResponsesState:
    return ResponsesState()


def step(state: ResponsesState, frame: Frame) -> Step:
    """Read one frame. Nothing follows a StepFinish or a ProviderFailure."""
    if state.ended:
        return state, ()
    try:
        event = load_json(frame.data)
    except ValueError as error:
        return _fail_malformed(state, f"A frame is not JSON: {error}")
    if not isinstance(event, dict):
        return _fail_malformed(state, "A frame is not a JSON object")
    kind = event.get("type")
    if kind == "response.output_text.delta":
        return _on_text_delta(state, event)
    handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
    if handler is not None:
        return handler(state, event)
    # A gateway may report its own failure in a frame without a type.
    return _on_error(state, event) if kind is None and event.get("error") else (state, ())


def finish(state: ResponsesState) -> Events:
    """A body without its end marker is truncated, even if the connection closed cleanly."""
    if state.ended:
        return ()
    return (failure.new_failure("stream-truncated", "The stream ended before its end marker"),)


def _on_text_delta(state: ResponsesState, event: Event) -> Step:
    """The hot path: most deltas add text to the block that is open already."""
    text, open_item = event.get("delta"), state.items.get(_output_index(event))
    if open_item is not None and open_item.shows_part(_part_index(event)) and isinstance(text, str):
        return state, (TextChunk(open_item.id, text),) if text else ()
    return _grow_item(state, event, "message", output.add_text)


def _on_summary_delta(state: ResponsesState, event: Event) -> Step:
    return _grow_item(state, event, "reasoning", output.add_reasoning)


def _on_reasoning_delta(state: ResponsesState, event: Event) -> Step:
    return _grow_item(state, event, "reasoning", partial(output.add_reasoning, raw=True))


def _grow_item(
    state: ResponsesState,
    event: Event,
    kind: str,
    grow: Callable[[OpenItem, int, str, str], tuple[OpenItem, Events]],
) -> Step:
    """Add text to an item. An unannounced item opens with its first text."""
    index, text = _output_index(event), event.get("delta")
    part = _part_index(event)
    if not isinstance(text, str) or not text:
        return state, ()
    start_events: Events = ()
    if (open_item := state.items.get(index)) is None or open_item.type != kind:
        state, start_events = _open_item(state, index, {"type": kind, "id": event.get("item_id")})
        open_item = state.items[index]
    after, events = grow(open_item, part, text, str(state.block_count))
    return _replace_item(state, index, open_item, after), (*start_events, *events)


def _on_part_done(state: ResponsesState, event: Event) -> Step:
    index, part = _output_index(event), event.get("part")
    open_item = state.items.get(index)
    if open_item is None or not isinstance(part, dict):
        return state, ()
    if not open_item.shows_part(_part_index(event)):
        return state, ()
    after, events = output.end_part(open_item, part)
    return replace(state, items={**state.items, index: after}), events


def _on_input_delta(state: ResponsesState, event: Event) -> Step:
    index, text = _output_index(event), event.get("delta")
    open_item = state.items.get(index)
    if open_item is None or open_item.type in {"message", "reasoning"} or not isinstance(text, str):
        return state, ()
    after, events = output.add_input(open_item, text)
    return _replace_item(state, index, open_item, after), events if text else ()


def _replace_item(
    state: ResponsesState, index: int | None, before: OpenItem, after: OpenItem
) -> ResponsesState:
    if after is before:
        return state
    block_count = state.block_count + (after.id != before.id)
    return replace(state, items={**state.items, index: after}, block_count=block_count)


def _on_item_added(state: ResponsesState, event: Event) -> Step:
    item = event.get("item")
    if not isinstance(item, dict) or native_calls.is_output(item):
        return state, ()
    return _open_item(state, _output_index(event), item)


def _open_item(state: ResponsesState, index: int | None, item: Event) -> Step:
    """Open an item, and close an unfinished item at the same index."""
    state, end_events = _close_item(state, index, None)
    fallback_id = f"{state.answer_id or 'call'}-{state.block_count}"
    open_item, events = output.begin(item, str(state.block_count), fallback_id)
    items = {**state.items, index: open_item}
    return replace(state, items=items, block_count=state.block_count + 1), (*end_events, *events)


def _on_item_done(state: ResponsesState, event: Event) -> Step:
    item, index = event.get("item"), _output_index(event)
    if not isinstance(item, dict):
        return state, ()
    if native_calls.is_output(item):
        return _answer_hosted_call(state, str(item.get("call_id")), item)
    start_events: Events = ()
    if (open_item := state.items.get(index)) is None or open_item.type != item.get("type"):
        state, start_events = _open_item(state, index, item)
    state, events = _close_item(state, index, item)
    return state, (*start_events, *events)


def _close_item(state: ResponsesState, index: int | None, item: Event | None) -> Step:
    open_item = state.items.get(index)
    if open_item is None:
        return state, ()
    events = output.end(open_item, item, str(state.block_count))
    if item is not None and open_item.type in native_calls.OUTPUT_TYPES and _is_executed(events):
        call_id = str(item.get("call_id") or open_item.id)
        state = replace(state, unanswered={**state.unanswered, call_id: (open_item, item)})
    state = replace(
        state,
        items={at: other for at, other in state.items.items() if at != index},
        has_local_calls=state.has_local_calls
        or native_calls.awaits_our_result(open_item, item or {}),
        block_count=state.block_count + 1,
    )
    return state, events


def _is_executed(events: Events) -> bool:
    return any(isinstance(event, ToolCall) and event.executed for event in events)


def _answer_hosted_call(state: ResponsesState, call_id: str, result: Event | None) -> Step:
    if call_id not in state.unanswered:
        return state, ()
    open_item, item = state.unanswered[call_id]
    rest = {id_: call for id_, call in state.unanswered.items() if id_ != call_id}
    events = native_calls.answer_hosted_call(open_item, result, item)
    return replace(state, unanswered=rest), events


def _output_index(event: Event) -> int | None:
    index = event.get("output_index")
    return index if isinstance(index, int) else None


def _part_index(event: Event) -> int:
    part = event.get("summary_index", event.get("content_index", 0))
    return part if isinstance(part, int) and part >= 0 else 0


def _on_created(state: ResponsesState, event: Event) -> Step:
    """Note the answer's id, which makes minted call ids unique over turns."""
    return replace(state, answer_id=str(_response(event).get("id") or "")), ()


def _response(event: Event) -> Event:
    response = event.get("response")
    return response if isinstance(response, dict) else {}


def _on_completed(state: ResponsesState, event: Event) -> Step:
    response = _response(event)
    end_events: Events = ()
    for index in tuple(state.items):
        state, events = _close_item(state, index, final_item(response, index, state.items[index]))
        end_events += events
    for call_id in tuple(state.unanswered):
        state, events = _answer_hosted_call(state, call_id, None)
        end_events += events
    is_complete = event["type"] == "response.completed"
    end = finish_step(response, is_complete=is_complete, has_calls=state.has_local_calls)
    return replace(state, ended=True), (*end_events, end)


def _on_failed(state: ResponsesState, event: Event) -> Step:
    error = _response(event).get("error")
    return _fail_with(state, error or {"message": "The provider failed without saying why"})


def _on_error(state: ResponsesState, event: Event) -> Step:
    """Read an error frame. The documentation has the error flat; gateways nest it."""
    return _fail_with(state, event.get("error") or event)


def _fail_with(state: ResponsesState, error: object) -> Step:
    """Classify by the error alone, because the response around it quotes texts of the request."""
    event = failure.stream_failure(error, orjson.dumps(error).decode())
    return replace(state, ended=True), (event,)


def _fail_malformed(state: ResponsesState, message: str) -> Step:
    return replace(state, ended=True), (failure.new_failure("malformed-stream", message),)


_HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "response.created": _on_created,
        "response.output_item.added": _on_item_added,
        "response.output_item.done": _on_item_done,
        "response.content_part.done": _on_part_done,
        "response.refusal.delta": _on_text_delta,
        "response.reasoning_summary_text.delta": _on_summary_delta,
        "response.reasoning_text.delta": _on_reasoning_delta,
        "response.function_call_arguments.delta": _on_input_delta,
        "response.custom_tool_call_input.delta": _on_input_delta,
        "response.mcp_call_arguments.delta": _on_input_delta,
        "response.code_interpreter_call_code.delta": _on_input_delta,
        "response.completed": _on_completed,
        "response.incomplete": _on_completed,
        "response.failed": _on_failed,
        "error": _on_error,
    }
)
