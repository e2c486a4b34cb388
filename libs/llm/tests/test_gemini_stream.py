"""Gemini chunks become canonical events: text, thoughts, calls, usage, finish."""

from typing import Any

import orjson
import pytest

from fairlead_llm import gemini, sse
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderUsage,
    ReasoningChunk,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    TextChunk,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)

LAST = {"finishReason": "STOP"}


def frame(value: object) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\r\n\r\n"


def chunk(*parts: dict[str, Any], reason: str | None = None, **more: object) -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return frame({"candidates": [candidate], "responseId": "r1", "modelVersion": "g", **more})


def call(**function: object) -> dict[str, Any]:
    return {"functionCall": function}


def play(*parts: bytes) -> list[ProviderEvent]:
    parser, state = sse.START, gemini.start()
    events: list[ProviderEvent] = []
    for part in parts:
        parser, frames = sse.feed(parser, part)
        for sse_frame in frames:
            state, new_events = gemini.step(state, sse_frame)
            events += new_events
    return [*events, *gemini.finish(state)]


def finish_of(*parts: bytes) -> StepFinish:
    last = play(*parts)[-1]
    assert isinstance(last, StepFinish)
    return last


def calls_of(*parts: bytes) -> list[ToolCall]:
    return [event for event in play(*parts) if isinstance(event, ToolCall)]


def test_text_streams_in_one_block_and_the_finish_reason_ends_the_step() -> None:
    events = play(chunk({"text": "Hel"}), chunk({"text": "lo"}, reason="STOP"))

    assert events == [
        TextStart("text-0"),
        TextChunk("text-0", "Hel"),
        TextChunk("text-0", "lo"),
        TextEnd("text-0"),
        StepFinish("stop", ProviderUsage(), {"id": "r1", "model": "g", "finishReason": "STOP"}),
    ]


def test_thoughts_are_reasoning_that_closes_when_text_begins() -> None:
    events = play(chunk({"text": "Hm", "thought": True}), chunk({"text": "Yes"}, reason="STOP"))

    assert events[:4] == [
        ReasoningStart("reasoning-0"),
        ReasoningChunk("reasoning-0", "Hm"),
        ReasoningEnd("reasoning-0"),
        TextStart("text-1"),
    ]


def test_a_signed_text_is_a_block_of_its_own_followed_by_its_signature() -> None:
    signed = {"text": "b", "thoughtSignature": "s"}

    events = play(chunk({"text": "a"}, signed, {"text": "c"}, reason="STOP"))

    assert events[2:8] == [
        TextEnd("text-0"),
        TextStart("text-1"),
        TextChunk("text-1", "b"),
        TextEnd("text-1"),
        ReasoningStart("reasoning-2"),
        ReasoningEnd("reasoning-2", {"google": {"textSignature": "s"}}),
    ]
    assert events[8] == TextStart("text-3")


def test_a_signed_thought_ends_with_its_signature() -> None:
    signed = {"text": "b", "thought": True, "thoughtSignature": "s"}

    events = play(chunk({"text": "a", "thought": True}), chunk(signed, reason="STOP"))

    assert events[2:6] == [
        ReasoningEnd("reasoning-0"),
        ReasoningStart("reasoning-1"),
        ReasoningChunk("reasoning-1", "b"),
        ReasoningEnd("reasoning-1", {"google": {"thoughtSignature": "s"}}),
    ]


def test_a_signature_on_an_empty_text_is_kept_with_its_part() -> None:
    """O-06: no text, but a signature that must go back."""
    trailing = {"text": "", "thoughtSignature": "s"}

    events = play(chunk({"text": "a"}), chunk(trailing, reason="STOP"))

    assert events[3:5] == [
        ReasoningStart("reasoning-1"),
        ReasoningEnd("reasoning-1", {"google": {"part": trailing}}),
    ]


def test_a_function_call_comes_whole_with_its_signature() -> None:
    part = call(name="look", args={"n": 1}, id="c1") | {"thoughtSignature": "s"}

    events = play(chunk(part, reason="STOP"))

    assert events[:4] == [
        ToolInputStart("c1", "look"),
        ToolInputChunk("c1", '{"n":1}'),
        ToolInputEnd("c1"),
        ToolCall("c1", "look", {"n": 1}, metadata={"google": {"thoughtSignature": "s"}}),
    ]
    assert getattr(events[-1], "finish", None) == "tool-calls"


def test_a_call_without_an_id_gets_one_that_no_other_answer_has() -> None:
    both = (call(name="a"), call(name="b", args={"n": 1}))
    other = frame({"candidates": [{"content": {"parts": [call(name="a", args={})]}, **LAST}]})
    more = frame({"candidates": [{"content": {"parts": [call(name="b", args={})]}, **LAST}]})

    calls = calls_of(chunk(*both, reason="STOP"))

    assert [(tool_call.id, tool_call.input) for tool_call in calls] == [
        ("r1-0", {}),
        ("r1-1", {"n": 1}),
    ]
    assert calls_of(other)[0].id != calls_of(more)[0].id


def test_arguments_may_come_in_pieces_named_by_their_path() -> None:
    def piece(path: str, **value: object) -> dict[str, Any]:
        return {"jsonPath": path, **value}

    calls = calls_of(
        chunk(call(name="look", willContinue=True) | {"thoughtSignature": "s"}),
        chunk(
            call(partialArgs=[piece("$.a", stringValue="x", willContinue=True)], willContinue=True)
        ),
        chunk(call(partialArgs=[piece("$.a", stringValue="y")], willContinue=True)),
        chunk(call(partialArgs=[piece("$.b[1].c", numberValue=2)], willContinue=True)),
        chunk(call(partialArgs=[piece("$['d e']", boolValue=True)], willContinue=True)),
        chunk(call(partialArgs=[piece("$.f", nullValue="NULL_VALUE")], willContinue=True)),
        chunk(call()),
        chunk(reason="STOP"),
    )

    input_ = {"a": "xy", "b": [None, {"c": 2}], "d e": True, "f": None}
    assert calls == [
        ToolCall("r1-0", "look", input_, metadata={"google": {"thoughtSignature": "s"}})
    ]


def test_code_that_the_provider_runs_is_an_executed_call_with_its_result() -> None:
    code = {"language": "PYTHON", "code": "print(1)"}
    code_result = {"outcome": "OUTCOME_OK", "output": "1\n"}

    events = play(
        chunk({"executableCode": code, "thoughtSignature": "s"}),
        chunk({"codeExecutionResult": code_result}, {"text": "1"}, reason="STOP"),
    )

    call_metadata = {"google": {"kind": "executableCode", "thoughtSignature": "s"}}
    assert events[:2] == [
        ToolCall("r1-0", "code_execution", code, executed=True, metadata=call_metadata),
        ToolResult("r1-0", code_result, metadata={"google": {"kind": "codeExecutionResult"}}),
    ]
    assert getattr(events[-1], "finish", None) == "stop"


def test_code_that_fails_is_an_error_that_keeps_its_value() -> None:
    code_result = {"outcome": "OUTCOME_FAILED", "output": "no"}

    tool_result = play(
        chunk({"executableCode": {"code": ""}}, {"codeExecutionResult": code_result})
    )[1]

    metadata = {"google": {"kind": "codeExecutionResult", "value": code_result}}
    assert tool_result == ToolResult("r1-0", code_result, error=True, metadata=metadata)


@pytest.mark.parametrize(
    "part",
    [
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"ofTomorrow": [1], "thoughtSignature": "s"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
    ],
)
def test_a_part_without_a_canonical_form_is_kept_whole(part: dict[str, Any]) -> None:
    assert play(chunk(part, reason="STOP"))[1] == ReasoningEnd(
        "reasoning-0", {"google": {"part": part}}
    )


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        *(
            (reason, "content-filter")
            for reason in ("SAFETY", "RECITATION", "SPII", "IMAGE_SAFETY")
        ),
        *((reason, "error") for reason in ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")),
        *((reason, "unknown") for reason in ("LANGUAGE", "OTHER", "NO_IMAGE", "OF_TOMORROW")),
    ],
)
def test_each_finish_reason_has_a_finish(reason: str, finish: str) -> None:
    assert finish_of(chunk({"text": "a"}, reason=reason)).finish == finish


def test_usage_grows_and_its_parts_are_disjoint() -> None:
    """D-34: no token is counted twice."""
    first = {"promptTokenCount": 55, "totalTokenCount": 60, "cachedContentTokenCount": 7}
    last = {"promptTokenCount": 257, "candidatesTokenCount": 9, "thoughtsTokenCount": 20}

    end = finish_of(
        chunk({"text": "a"}, usageMetadata=first),
        frame({"usageMetadata": {"toolUsePromptTokenCount": 10}}),
        chunk({"text": "b"}, reason="STOP", usageMetadata=last | {"totalTokenCount": 296}),
    )

    assert end.usage == ProviderUsage(260, cache_read=7, output=9, reasoning=20, total=296)


def test_grounding_and_finish_message_are_told_with_the_finish() -> None:
    grounded = {"groundingMetadata": {"webSearchQueries": ["x"]}, "finishMessage": "done"}

    end = finish_of(frame({"candidates": [LAST | grounded]}))

    assert (end.metadata or {}).items() >= grounded.items()
