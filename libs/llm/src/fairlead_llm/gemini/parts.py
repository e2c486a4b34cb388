"""The parts of a streamed answer as canonical events.

The API sends no block ends. Text and reasoning end when the kind changes, or at a signed part,
which must go back alone.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from fairlead_llm.calls import arguments
from fairlead_llm.content import json_text
from fairlead_llm.gemini.metadata import (
    HOSTED_CALLS,
    HOSTED_RESULTS,
    SIGNATURE,
    Part,
    hidden_reasoning,
    native_metadata,
)
from fairlead_llm.gemini.partial_arguments import put_piece
from fairlead_schema.provider.events import (
    ProviderEvent,
    ReasoningChunk,
    ReasoningEnd,
    ReasoningStart,
    TextChunk,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)

Events: TypeAlias = tuple[ProviderEvent, ...]
Kind: TypeAlias = Literal["text", "reasoning"]

_UNFINISHED = "The provider ended its answer before this call was complete"
_NAMES = {"executableCode": "code_execution", "toolCall": "tool"}
_FAILED_OUTCOMES = frozenset({"OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"})


@dataclass(frozen=True, slots=True)
class PartialCall:
    """A call whose arguments arrive in pieces."""

    id: str
    name: str
    signature: str | None
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PartsState:
    """The open block and calls. `seed` makes minted ids differ between answers."""

    seed: str = ""
    kind: Kind | None = None
    block_count: int = 0
    minted_ids: int = 0
    has_local_calls: bool = False
    partial: PartialCall | None = None
    open_hosted_calls: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The id of the open block."""
        return f"{self.kind}-{self.block_count - 1}"


Step: TypeAlias = tuple[PartsState, Events]


def add_part(state: PartsState, part: Part) -> Step:
    """Read one part. Raises KeyError or TypeError for an unexpected shape."""
    text = part.get("text")
    if isinstance(text, str):
        kind: Kind = "reasoning" if part.get("thought") else "text"
        if SIGNATURE in part:
            return _add_signed_text(state, kind, part)
        if not text:
            return state, ()
        state, start_events = _open_block(state, kind)
        chunk = TextChunk(state.id, text) if kind == "text" else ReasoningChunk(state.id, text)
        return state, (*start_events, chunk)
    if "functionCall" in part:
        return _add_call(state, part)
    for name in HOSTED_CALLS:
        if name in part:
            return _add_hosted_call(state, name, part)
    for name in HOSTED_RESULTS:
        if name in part:
            return _add_hosted_result(state, name, part)
    return _add_hidden(state, part=part) if part else (state, ())


def close_all(state: PartsState) -> Step:
    """End the open block and call. A call with incomplete arguments is invalid."""
    state, events = _close_block(state)
    if state.partial is None:
        return state, events
    state, call_events = _end_call(state, _UNFINISHED)
    return state, (*events, *call_events)


def _open_block(state: PartsState, kind: Kind) -> Step:
    if state.kind == kind:
        return state, ()
    state, end_events = _close_block(state)
    state = replace(state, kind=kind, block_count=state.block_count + 1)
    start_event = TextStart(state.id) if kind == "text" else ReasoningStart(state.id)
    return state, (*end_events, start_event)


def _close_block(state: PartsState) -> Step:
    if state.kind is None:
        return state, ()
    end = TextEnd(state.id) if state.kind == "text" else ReasoningEnd(state.id)
    return replace(state, kind=None), (end,)


def _add_signed_text(state: PartsState, kind: Kind, part: Part) -> Step:
    """A signed part is a block of its own, so that it can go back unchanged."""
    text, signature = part["text"], part[SIGNATURE]
    if not text:
        return _add_hidden(state, part=part)
    state, before = _close_block(state)
    state, start_events = _open_block(state, kind)
    id_ = state.id
    if kind == "reasoning":
        end = ReasoningEnd(id_, native_metadata(thoughtSignature=signature))
        return replace(state, kind=None), (*before, *start_events, ReasoningChunk(id_, text), end)
    state, end_events = _close_block(state)
    state, hidden = _add_hidden(state, textSignature=signature)
    return state, (*before, *start_events, TextChunk(id_, text), *end_events, *hidden)


def _add_hidden(state: PartsState, **fields: object) -> Step:
    state, before = _close_block(state)
    hidden = hidden_reasoning(f"reasoning-{state.block_count}", **fields)
    return replace(state, block_count=state.block_count + 1), (*before, *hidden)


def _add_call(state: PartsState, part: Part) -> Step:
    """Read a call, or a piece of one. A call may spread over several parts."""
    call = part["functionCall"]
    pieces = call.get("partialArgs") or ()
    if state.partial is None:
        state, events = _begin_call(state, call, part.get(SIGNATURE))
        if not pieces and not call.get("willContinue"):
            state, call_events = _end_whole_call(state, call.get("args"))
            return state, (*events, *call_events)
    else:
        events = ()
    assert state.partial is not None, "a call began here or before"
    input_ = state.partial.input
    for piece in pieces:
        input_ = put_piece(input_, piece)
    state = replace(state, partial=replace(state.partial, input=input_))
    if call.get("willContinue"):
        return state, events
    state, call_events = _end_call(state, None)
    return state, (*events, *call_events)


def _begin_call(state: PartsState, call: dict[str, Any], signature: str | None) -> Step:
    state, before = _close_block(state)
    state, id_ = _call_id(state, call)
    name = str(call.get("name") or "")
    state = replace(state, has_local_calls=True, partial=PartialCall(id_, name, signature, {}))
    return state, (*before, ToolInputStart(id_, name))


def _end_whole_call(state: PartsState, args: object) -> Step:
    """End a call that arrived in one part. Absent arguments mean an empty object."""
    value = {} if args is None else args
    return _end_call(state, arguments.fault(value), value)


def _end_call(state: PartsState, invalid: str | None, value: object = None) -> Step:
    call = state.partial
    assert call is not None, "only an open call ends"
    input_ = call.input if value is None else value
    invalid = invalid if call.name else "The provider named no tool"
    metadata = native_metadata(thoughtSignature=call.signature)
    return replace(state, partial=None), (
        ToolInputChunk(call.id, json_text(input_)),
        ToolInputEnd(call.id),
        ToolCall(call.id, call.name, input_, metadata=metadata, invalid=invalid),
    )


def _add_hosted_call(state: PartsState, name: str, part: Part) -> Step:
    """Read a call of a hosted tool. The value of the part is its input."""
    value = part[name]
    state, before = _close_block(state)
    state, id_ = _call_id(state, value)
    tool = str(value.get("toolType") or _NAMES[name]).lower()
    metadata = native_metadata(kind=name, thoughtSignature=part.get(SIGNATURE))
    call = ToolCall(id_, tool, value, executed=True, metadata=metadata)
    return replace(state, open_hosted_calls=(*state.open_hosted_calls, id_)), (*before, call)


def _add_hosted_result(state: PartsState, name: str, part: Part) -> Step:
    """Settle the hosted call that the result names, or the oldest open one.

    A result without an open call goes back unchanged.
    """
    value = part[name]
    id_ = value.get("id")
    if id_ not in state.open_hosted_calls:
        id_ = next(iter(state.open_hosted_calls), None)
    if id_ is None:
        return _add_hidden(state, part=part)
    state, before = _close_block(state)
    error = value.get("outcome") in _FAILED_OUTCOMES
    metadata = native_metadata(
        kind=name, thoughtSignature=part.get(SIGNATURE), value=value if error else None
    )
    rest = tuple(call_id for call_id in state.open_hosted_calls if call_id != id_)
    result = ToolResult(id_, value, error=error, metadata=metadata)
    return replace(state, open_hosted_calls=rest), (*before, result)


def _call_id(state: PartsState, call: dict[str, Any]) -> tuple[PartsState, str]:
    if call.get("id"):
        return state, str(call["id"])
    return replace(state, minted_ids=state.minted_ids + 1), f"{state.seed}-{state.minted_ids}"
