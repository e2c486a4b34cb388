"""From Responses frames to canonical events."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import orjson

from fairlead_llm import failure
from fairlead_llm.json_reader import loaded
from fairlead_llm.openai_responses import output, usage
from fairlead_llm.openai_responses.output import Events, Open
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import Finish, StepFinish, TextChunk

Event: TypeAlias = dict[str, Any]

_INCOMPLETE: Mapping[str, Finish] = MappingProxyType(
    {"max_output_tokens": "length", "content_filter": "content-filter"}
)
_ANSWER = ("id", "model", "status", "incomplete_details", "usage")


@dataclass(frozen=True, slots=True)
class State:
    """The items that are open, by output index, and what was seen of the answer."""

    items: Mapping[int | None, Open] = field(default_factory=dict)
    opened: int = 0
    called: bool = False
    answer_id: str = ""
    ended: bool = False


def start() -> State:
    return State()


def step(state: State, frame: Frame) -> tuple[State, Events]:
    """Take one frame. Nothing follows a StepFinish or a ProviderFailure."""
    if state.ended:
        return state, ()
    try:
        event = loaded(frame.data)
    except ValueError as error:
        return _malformed(state, f"A frame is not JSON: {error}")
    if not isinstance(event, dict):
        return _malformed(state, "A frame is not a JSON object")
    kind = event.get("type")
    if kind == "response.output_text.delta":
        return _said(state, event)
    take = _TAKES.get(kind) if isinstance(kind, str) else None
    if take is not None:
        return take(state, event)
    # A gateway may report its own failure with no type at all.
    return _error(state, event) if kind is None and event.get("error") else (state, ())


def finish(state: State) -> Events:
    """A body that ends without its end marker was cut, however cleanly it was closed."""
    if state.ended:
        return ()
    return (failure.failed("stream-truncated", "The stream ended before its end marker"),)


def _said(state: State, event: Event) -> tuple[State, Events]:
    """The hot path: most deltas add text to the block that is open already."""
    text, opened = event.get("delta"), state.items.get(_index(event))
    if opened is not None and opened.says(_part(event)) and isinstance(text, str):
        return state, (TextChunk(opened.id, text),) if text else ()
    return _grown(state, event, "message", output.said)


def _thought(state: State, event: Event) -> tuple[State, Events]:
    return _grown(state, event, "reasoning", output.thought)


def _thought_aloud(state: State, event: Event) -> tuple[State, Events]:
    def raw(opened: Open, part: int, text: str, fresh: str) -> tuple[Open, Events]:
        return output.thought(opened, part, text, fresh, raw=True)

    return _grown(state, event, "reasoning", raw)


def _grown(
    state: State,
    event: Event,
    kind: str,
    grow: Callable[[Open, int, str, str], tuple[Open, Events]],
) -> tuple[State, Events]:
    """Add text to an item; one that was never announced is opened by its first text."""
    index, text = _index(event), event.get("delta")
    part = _part(event)
    if not isinstance(text, str) or not text:
        return state, ()
    begun: Events = ()
    if (opened := state.items.get(index)) is None or opened.type != kind:
        state, begun = _begun(state, index, {"type": kind, "id": event.get("item_id")})
        opened = state.items[index]
    after, events = grow(opened, part, text, str(state.opened))
    return _kept(state, index, opened, after), (*begun, *events)


def _part_done(state: State, event: Event) -> tuple[State, Events]:
    index, part = _index(event), event.get("part")
    opened = state.items.get(index)
    if opened is None or not isinstance(part, dict) or not opened.says(_part(event)):
        return state, ()
    after, events = output.part_done(opened, part)
    return replace(state, items={**state.items, index: after}), events


def _typed(state: State, event: Event) -> tuple[State, Events]:
    index, text = _index(event), event.get("delta")
    opened = state.items.get(index)
    if opened is None or opened.type in {"message", "reasoning"} or not isinstance(text, str):
        return state, ()
    after, events = output.typed(opened, text)
    return _kept(state, index, opened, after), events if text else ()


def _kept(state: State, index: int | None, before: Open, after: Open) -> State:
    if after is before:
        return state
    shown = state.opened + (after.id != before.id)
    return replace(state, items={**state.items, index: after}, opened=shown)


def _added(state: State, event: Event) -> tuple[State, Events]:
    item = event.get("item")
    if not isinstance(item, dict):
        return state, ()
    return _begun(state, _index(event), item)


def _begun(state: State, index: int | None, item: Event) -> tuple[State, Events]:
    """Open an item. One still open at its index never said that it was done."""
    state, closed = _closed(state, index, None)
    minted = f"{state.answer_id or 'call'}-{state.opened}"
    opened, events = output.begin(item, str(state.opened), minted)
    items = {**state.items, index: opened}
    return replace(state, items=items, opened=state.opened + 1), (*closed, *events)


def _done(state: State, event: Event) -> tuple[State, Events]:
    item, index = event.get("item"), _index(event)
    if not isinstance(item, dict):
        return state, ()
    begun: Events = ()
    if (opened := state.items.get(index)) is None or opened.type != item.get("type"):
        state, begun = _begun(state, index, item)
    state, events = _closed(state, index, item)
    return state, (*begun, *events)


def _closed(state: State, index: int | None, item: Event | None) -> tuple[State, Events]:
    opened = state.items.get(index)
    if opened is None:
        return state, ()
    rest = {at: one for at, one in state.items.items() if at != index}
    called = state.called or output.calls(opened, item or {})
    events = output.end(opened, item, str(state.opened))
    return replace(state, items=rest, called=called, opened=state.opened + 1), events


def _index(event: Event) -> int | None:
    index = event.get("output_index")
    return index if isinstance(index, int) else None


def _part(event: Event) -> int:
    part = event.get("summary_index", event.get("content_index", 0))
    return part if isinstance(part, int) and part >= 0 else 0


def _created(state: State, event: Event) -> tuple[State, Events]:
    """The answer's id makes a call id that we must mint unique over turns."""
    return replace(state, answer_id=str(_answer(event).get("id") or "")), ()


def _answer(event: Event) -> Event:
    answer = event.get("response")
    return answer if isinstance(answer, dict) else {}


def _completed(state: State, event: Event) -> tuple[State, Events]:
    answer = _answer(event)
    closed: Events = ()
    for index in tuple(state.items):
        state, events = _closed(state, index, None)
        closed += events
    reason = _reason(answer, called=state.called, complete=event["type"] == "response.completed")
    metadata = {name: answer[name] for name in _ANSWER if answer.get(name) is not None}
    end = StepFinish(reason, usage.disjoint(answer.get("usage")), metadata or None)
    return replace(state, ended=True), (*closed, end)


def _reason(answer: Event, *, called: bool, complete: bool) -> Finish:
    if complete:
        return "tool-calls" if called else "stop"
    details = answer.get("incomplete_details")
    return (
        _INCOMPLETE.get(str(details.get("reason")), "unknown")
        if isinstance(details, dict)
        else "unknown"
    )


def _failed(state: State, event: Event) -> tuple[State, Events]:
    error = _answer(event).get("error")
    return _broken(state, error or {"message": "The provider failed without saying why"})


def _error(state: State, event: Event) -> tuple[State, Events]:
    """Documented flat, seen nested."""
    return _broken(state, event.get("error") or event)


def _broken(state: State, error: object) -> tuple[State, Events]:
    """Judged by the error alone: the answer around it quotes the request's own words."""
    told = failure.broken(error, orjson.dumps(error).decode())
    return replace(state, ended=True), (told,)


def _malformed(state: State, message: str) -> tuple[State, Events]:
    return replace(state, ended=True), (failure.failed("malformed-stream", message),)


_TAKES: Mapping[str, Callable[[State, Event], tuple[State, Events]]] = MappingProxyType(
    {
        "response.created": _created,
        "response.output_item.added": _added,
        "response.output_item.done": _done,
        "response.content_part.done": _part_done,
        "response.refusal.delta": _said,
        "response.reasoning_summary_text.delta": _thought,
        "response.reasoning_text.delta": _thought_aloud,
        "response.function_call_arguments.delta": _typed,
        "response.custom_tool_call_input.delta": _typed,
        "response.mcp_call_arguments.delta": _typed,
        "response.code_interpreter_call_code.delta": _typed,
        "response.completed": _completed,
        "response.incomplete": _completed,
        "response.failed": _failed,
        "error": _error,
    }
)
