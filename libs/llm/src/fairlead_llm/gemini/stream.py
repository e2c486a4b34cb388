"""From Gemini chunks to canonical events. The chunk that says why the answer finished is the last."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, TypeAlias

from fairlead_llm import failure
from fairlead_llm.errors import Unsendable
from fairlead_llm.gemini import parts, usage
from fairlead_llm.gemini.parts import Events, Parts
from fairlead_llm.json_reader import loaded
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import Finish, StepFinish

_FINISHES: Mapping[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        (
            *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
        ),
        "content-filter",
    ),
    **dict.fromkeys(
        (
            *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"),
            *("TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"),
        ),
        "error",
    ),
}
_KEPT = ("finishMessage", "groundingMetadata", "urlContextMetadata", "citationMetadata")


@dataclass(frozen=True, slots=True)
class State:
    """What the chunks so far have opened, and what they said about the answer."""

    parts: Parts = field(default_factory=Parts)
    answer: dict[str, Any] | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    ended: bool = False


Step: TypeAlias = tuple[State, Events]


def start() -> State:
    return State()


def step(state: State, frame: Frame) -> Step:
    """Take one frame. Nothing follows a StepFinish or a ProviderFailure."""
    if state.ended:
        return state, ()
    try:
        chunk = loaded(frame.data)
    except ValueError as error:
        return _malformed(state, (), f"A frame is not JSON: {error}")
    if isinstance(chunk, list) and len(chunk) == 1:
        chunk = chunk[0]
    if not isinstance(chunk, dict):
        return _malformed(state, (), "A frame is not a JSON object")
    if chunk.get("error"):
        text = frame.data.decode(errors="replace")
        return replace(state, ended=True), (failure.broken(chunk["error"], text),)
    try:
        state = _noted(state, chunk, frame.data)
        candidates = chunk.get("candidates")
        if candidates:
            return _chosen(state, candidates[0])
        return _unanswered(state, chunk)
    except (AttributeError, KeyError, TypeError) as error:
        # The shape of a frame is the provider's word: a wrong one must not break us.
        return _malformed(state, (), f"A chunk has an unexpected shape: {error!r}")


def finish(state: State) -> Events:
    """A body that ends without a finish reason was cut, however cleanly it was closed."""
    if state.ended:
        return ()
    return (failure.failed("stream-truncated", "The stream ended before its finish reason"),)


def _noted(state: State, chunk: dict[str, Any], raw: bytes) -> State:
    """Remember what the chunk says beside its candidate."""
    counted = usage.merged(state.usage, chunk.get("usageMetadata"))
    if state.answer is not None:
        return state if counted is state.usage else replace(state, usage=counted)
    named = {"id": chunk.get("responseId"), "model": chunk.get("modelVersion")}
    answer = {name: value for name, value in named.items() if value}
    seed = str(answer.get("id") or blake2b(raw, digest_size=8).hexdigest())
    return replace(state, usage=counted, answer=answer, parts=replace(state.parts, seed=seed))


def _chosen(state: State, candidate: dict[str, Any]) -> Step:
    """The first candidate's parts; those before a part we cannot read are kept."""
    events: Events = ()
    for part in (candidate.get("content") or {}).get("parts") or ():
        try:
            taken, told = parts.taken(state.parts, part)
        except (AttributeError, KeyError, TypeError, Unsendable) as error:
            return _malformed(state, events, f"A part has an unexpected shape: {error!r}")
        events += told
        if taken is not state.parts:
            state = replace(state, parts=taken)
    kept = {name: candidate[name] for name in _KEPT if candidate.get(name)}
    if kept:
        state = replace(state, answer=(state.answer or {}) | kept)
    reason = candidate.get("finishReason")
    if not reason:
        return state, events
    state, ended = _ended(state, str(reason))
    return state, (*events, *ended)


def _unanswered(state: State, chunk: dict[str, Any]) -> Step:
    """No candidate: the prompt was blocked, or the chunk only counts."""
    feedback = chunk.get("promptFeedback")
    if not feedback or not feedback.get("blockReason"):
        return state, ()
    answer = (state.answer or {}) | {"promptFeedback": feedback}
    return _ended(replace(state, answer=answer), "SAFETY")


def _ended(state: State, reason: str) -> Step:
    last, events = parts.closed(state.parts)
    metadata = dict(state.answer or {})
    if "promptFeedback" not in metadata:
        metadata["finishReason"] = reason
    if state.usage:
        metadata["usage"] = state.usage
    finish = _FINISHES.get(reason, "unknown")
    if finish == "stop" and last.called:
        finish = "tool-calls"
    end = StepFinish(finish, usage.disjoint(state.usage), metadata)
    return replace(state, parts=last, ended=True), (*events, end)


def _malformed(state: State, before: Events, message: str) -> Step:
    failed = failure.failed("malformed-stream", message)
    return replace(state, ended=True), (*before, failed)
