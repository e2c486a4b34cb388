"""From Gemini chunks to canonical events. The chunk with a finish reason is the last one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, TypeAlias

from fairlead_llm import failure
from fairlead_llm.errors import UnsendableRequest
from fairlead_llm.gemini import parts, usage
from fairlead_llm.gemini.parts import Events, PartsState
from fairlead_llm.json_reader import load_json
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
_CANDIDATE_METADATA = (
    "finishMessage",
    "groundingMetadata",
    "urlContextMetadata",
    "citationMetadata",
)


@dataclass(frozen=True, slots=True)
class GeminiState:
    """The state of the parts, and the answer and usage of the chunks so far."""

    parts: PartsState = field(default_factory=PartsState)
    answer: dict[str, Any] | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    ended: bool = False


Step: TypeAlias = tuple[GeminiState, Events]


def start() -> GeminiState:
    return GeminiState()


def step(state: GeminiState, frame: Frame) -> Step:
    """Read one frame. Nothing follows a StepFinish or a ProviderFailure."""
    if state.ended:
        return state, ()
    try:
        chunk = load_json(frame.data)
    except ValueError as error:
        return _fail_malformed(state, (), f"A frame is not JSON: {error}")
    if isinstance(chunk, list) and len(chunk) == 1:
        chunk = chunk[0]
    if not isinstance(chunk, dict):
        return _fail_malformed(state, (), "A frame is not a JSON object")
    if chunk.get("error"):
        text = frame.data.decode(errors="replace")
        return replace(state, ended=True), (failure.stream_failure(chunk["error"], text),)
    try:
        state = _note_answer(state, chunk, frame.data)
        candidates = chunk.get("candidates")
        if candidates:
            return _read_candidate(state, candidates[0])
        return _read_no_candidate(state, chunk)
    except (AttributeError, KeyError, TypeError) as error:
        # The provider controls the shape of a frame, so a wrong shape must not raise.
        return _fail_malformed(state, (), f"A chunk has an unexpected shape: {error!r}")


def finish(state: GeminiState) -> Events:
    """A body without a finish reason is truncated, even if the connection closed cleanly."""
    if state.ended:
        return ()
    return (failure.new_failure("stream-truncated", "The stream ended before its finish reason"),)


def _note_answer(state: GeminiState, chunk: dict[str, Any], raw: bytes) -> GeminiState:
    """Note the id, model and usage of the chunk."""
    report = usage.merge_reports(state.usage, chunk.get("usageMetadata"))
    if state.answer is not None:
        return state if report is state.usage else replace(state, usage=report)
    identity = {"id": chunk.get("responseId"), "model": chunk.get("modelVersion")}
    answer = {name: value for name, value in identity.items() if value}
    seed = str(answer.get("id") or blake2b(raw, digest_size=8).hexdigest())
    return replace(state, usage=report, answer=answer, parts=replace(state.parts, seed=seed))


def _read_candidate(state: GeminiState, candidate: dict[str, Any]) -> Step:
    """Read the parts of the first candidate. A malformed part keeps the events before it."""
    events: Events = ()
    for part in (candidate.get("content") or {}).get("parts") or ():
        try:
            after, new_events = parts.add_part(state.parts, part)
        except (AttributeError, KeyError, TypeError, UnsendableRequest) as error:
            return _fail_malformed(state, events, f"A part has an unexpected shape: {error!r}")
        events += new_events
        if after is not state.parts:
            state = replace(state, parts=after)
    metadata = {name: candidate[name] for name in _CANDIDATE_METADATA if candidate.get(name)}
    if metadata:
        state = replace(state, answer=(state.answer or {}) | metadata)
    reason = candidate.get("finishReason")
    if not reason:
        return state, events
    state, end_events = _finish_step(state, str(reason))
    return state, (*events, *end_events)


def _read_no_candidate(state: GeminiState, chunk: dict[str, Any]) -> Step:
    """Read a chunk without a candidate: a blocked prompt, or usage only."""
    feedback = chunk.get("promptFeedback")
    if not feedback or not feedback.get("blockReason"):
        return state, ()
    answer = (state.answer or {}) | {"promptFeedback": feedback}
    return _finish_step(replace(state, answer=answer), "SAFETY")


def _finish_step(state: GeminiState, reason: str) -> Step:
    last, events = parts.close_all(state.parts)
    metadata = dict(state.answer or {})
    if "promptFeedback" not in metadata:
        metadata["finishReason"] = reason
    if state.usage:
        metadata["usage"] = state.usage
    finish = _FINISHES.get(reason, "unknown")
    if finish == "stop" and last.has_local_calls:
        finish = "tool-calls"
    end = StepFinish(finish, usage.read_usage(state.usage), metadata)
    return replace(state, parts=last, ended=True), (*events, end)


def _fail_malformed(state: GeminiState, before: Events, message: str) -> Step:
    event = failure.new_failure("malformed-stream", message)
    return replace(state, ended=True), (*before, event)
