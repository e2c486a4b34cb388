"""The parts of a streamed answer, one after another.

The wire has no ends of blocks: text and reasoning close when the kind changes, or when a signature
marks a part that must go back alone.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from fairlead_llm import arguments
from fairlead_llm.content import json_text
from fairlead_llm.gemini import native
from fairlead_llm.gemini.native import HOSTED_CALLS, HOSTED_RESULTS, SIGNATURE, Part
from fairlead_llm.gemini.partial import placed
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
_FAILED = frozenset({"OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"})


@dataclass(frozen=True, slots=True)
class Partial:
    """A call whose arguments come in pieces."""

    id: str
    name: str
    signature: str | None
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the parts so far have opened. `seed` makes minted ids differ between answers."""

    seed: str = ""
    kind: Kind | None = None
    blocks: int = 0
    minted: int = 0
    called: bool = False
    partial: Partial | None = None
    awaited: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The open block's id."""
        return f"{self.kind}-{self.blocks - 1}"


Step: TypeAlias = tuple[Parts, Events]


def taken(parts: Parts, part: Part) -> Step:
    """Take one part. Raises KeyError or TypeError when its shape is not the wire's."""
    text = part.get("text")
    if isinstance(text, str):
        kind: Kind = "reasoning" if part.get("thought") else "text"
        if SIGNATURE in part:
            return _signed(parts, kind, part)
        if not text:
            return parts, ()
        parts, opened = _opened(parts, kind)
        chunk = TextChunk(parts.id, text) if kind == "text" else ReasoningChunk(parts.id, text)
        return parts, (*opened, chunk)
    if "functionCall" in part:
        return _called(parts, part)
    for name in HOSTED_CALLS:
        if name in part:
            return _hosted_call(parts, name, part)
    for name in HOSTED_RESULTS:
        if name in part:
            return _hosted_result(parts, name, part)
    return _silent(parts, part=part) if part else (parts, ())


def closed(parts: Parts) -> Step:
    """End what is open. A call whose arguments never ended is one that cannot be run."""
    parts, events = _closed_block(parts)
    if parts.partial is None:
        return parts, events
    parts, made = _finalised(parts, _UNFINISHED)
    return parts, (*events, *made)


def _opened(parts: Parts, kind: Kind) -> Step:
    if parts.kind == kind:
        return parts, ()
    parts, before = _closed_block(parts)
    parts = replace(parts, kind=kind, blocks=parts.blocks + 1)
    return parts, (*before, TextStart(parts.id) if kind == "text" else ReasoningStart(parts.id))


def _closed_block(parts: Parts) -> Step:
    if parts.kind is None:
        return parts, ()
    end = TextEnd(parts.id) if parts.kind == "text" else ReasoningEnd(parts.id)
    return replace(parts, kind=None), (end,)


def _signed(parts: Parts, kind: Kind, part: Part) -> Step:
    """A signed part is a block of its own, so that it can go back as it came."""
    text, signature = part["text"], part[SIGNATURE]
    if not text:
        return _silent(parts, part=part)
    parts, before = _closed_block(parts)
    parts, opened = _opened(parts, kind)
    id_ = parts.id
    if kind == "reasoning":
        end = ReasoningEnd(id_, native.noted(thoughtSignature=signature))
        return replace(parts, kind=None), (*before, *opened, ReasoningChunk(id_, text), end)
    parts, ended = _closed_block(parts)
    parts, told = _silent(parts, textSignature=signature)
    return parts, (*before, *opened, TextChunk(id_, text), *ended, *told)


def _silent(parts: Parts, **fields: object) -> Step:
    parts, before = _closed_block(parts)
    told = native.silent(f"reasoning-{parts.blocks}", **fields)
    return replace(parts, blocks=parts.blocks + 1), (*before, *told)


def _called(parts: Parts, part: Part) -> Step:
    """A call comes whole, or begins, goes on and ends over several parts."""
    call = part["functionCall"]
    pieces = call.get("partialArgs") or ()
    if parts.partial is None:
        parts, events = _begun(parts, call, part.get(SIGNATURE))
        if not pieces and not call.get("willContinue"):
            parts, made = _whole(parts, call.get("args"))
            return parts, (*events, *made)
    else:
        events = ()
    assert parts.partial is not None, "a call was begun here or before"
    held = parts.partial.input
    for piece in pieces:
        held = placed(held, piece)
    parts = replace(parts, partial=replace(parts.partial, input=held))
    if call.get("willContinue"):
        return parts, events
    parts, made = _finalised(parts, None)
    return parts, (*events, *made)


def _begun(parts: Parts, call: dict[str, Any], signature: str | None) -> Step:
    parts, before = _closed_block(parts)
    parts, id_ = _id(parts, call)
    name = str(call.get("name") or "")
    parts = replace(parts, called=True, partial=Partial(id_, name, signature, {}))
    return parts, (*before, ToolInputStart(id_, name))


def _whole(parts: Parts, given: object) -> Step:
    """Arguments that came at once; none means an empty object."""
    value = {} if given is None else given
    return _finalised(parts, arguments.fault(value), value)


def _finalised(parts: Parts, invalid: str | None, value: object = None) -> Step:
    call = parts.partial
    assert call is not None, "only a call that was begun ends"
    held = call.input if value is None else value
    invalid = invalid if call.name else "The provider named no tool"
    metadata = native.noted(thoughtSignature=call.signature)
    return replace(parts, partial=None), (
        ToolInputChunk(call.id, json_text(held)),
        ToolInputEnd(call.id),
        ToolCall(call.id, call.name, held, metadata=metadata, invalid=invalid),
    )


def _hosted_call(parts: Parts, name: str, part: Part) -> Step:
    """A tool that the provider runs itself: its input is the part's own value."""
    given = part[name]
    parts, before = _closed_block(parts)
    parts, id_ = _id(parts, given)
    tool = str(given.get("toolType") or _NAMES[name]).lower()
    metadata = native.noted(kind=name, thoughtSignature=part.get(SIGNATURE))
    made = ToolCall(id_, tool, given, executed=True, metadata=metadata)
    return replace(parts, awaited=(*parts.awaited, id_)), (*before, made)


def _hosted_result(parts: Parts, name: str, part: Part) -> Step:
    """The result of the hosted call it names, or of the oldest that waits; else told again as it is."""
    value = part[name]
    given = value.get("id")
    id_ = given if given in parts.awaited else next(iter(parts.awaited), None)
    if id_ is None:
        return _silent(parts, part=part)
    parts, before = _closed_block(parts)
    error = value.get("outcome") in _FAILED
    metadata = native.noted(
        kind=name, thoughtSignature=part.get(SIGNATURE), value=value if error else None
    )
    rest = tuple(one for one in parts.awaited if one != id_)
    result = ToolResult(id_, value, error=error, metadata=metadata)
    return replace(parts, awaited=rest), (*before, result)


def _id(parts: Parts, given: dict[str, Any]) -> tuple[Parts, str]:
    if given.get("id"):
        return parts, str(given["id"])
    return replace(parts, minted=parts.minted + 1), f"{parts.seed}-{parts.minted}"
