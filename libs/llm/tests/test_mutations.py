"""Frames with any one value wrong: no protocol crashes, and what it tells keeps its types."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, TypeAlias

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json

from fairlead_llm.arguments import parse_arguments
from fairlead_llm.protocol import PROTOCOLS
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import ProviderEvent, ProviderFailure, StepFinish

Path: TypeAlias = tuple[str | int, ...]

STREAMS: dict[str, list[Any]] = {
    "anthropic-messages": [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"a": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t", "name": "look", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "{}"},
        },
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"a": 2}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "No.", "details": [{}]}},
        {"type": "message_stop"},
    ],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "r"}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "reasoning", "id": "rs", "summary": []},
        },
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm"},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {"type": "reasoning", "summary": [{"text": "Hm"}], "encrypted_content": "e"},
        },
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {"type": "message", "id": "msg", "phase": "commentary"},
        },
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "a"},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {
                "type": "message",
                "id": "msg",
                "phase": "commentary",
                "content": [{"type": "output_text", "text": "a", "annotations": [{"url": "u"}]}],
            },
        },
        {
            "type": "response.output_item.done",
            "output_index": 2,
            "item": {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
        },
        {"type": "error", "error": {"code": "server_error", "message": "No."}},
        {"type": "response.completed", "response": {"id": "r", "usage": {"input_tokens": 1}}},
    ],
    "openai-chat": [
        {"id": "c", "choices": [{"delta": {"reasoning_content": "Hm"}}]},
        {"choices": [{"delta": {"reasoning_details": [{"type": "t", "text": "a", "index": 0}]}}]},
        {"choices": [{"delta": {"reasoning_details": [{"type": "t", "text": "b", "index": 0}]}}]},
        {"choices": [{"delta": {"content": "a"}}]},
        {
            "choices": [
                {
                    "delta": {
                        "tool_calls": [
                            {"index": 0, "id": "t", "function": {"name": "n", "arguments": "{"}}
                        ]
                    }
                }
            ]
        },
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}}]},
        {"choices": [{"finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens_details": {"x": 1}}},
        {"error": {"code": 500, "message": "No.", "metadata": {"raw": "x"}}},
    ],
    "gemini": [
        {
            "candidates": [{"content": {"parts": [{"text": "Hm", "thought": True}]}}],
            "responseId": "g",
            "usageMetadata": {"promptTokenCount": 1},
        },
        {"candidates": [{"content": {"parts": [{"text": "a", "thoughtSignature": "s"}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "n", "args": {}}}]}}]},
        {"candidates": [{"content": {"parts": [{"executableCode": {"code": "1"}}]}}]},
        {"promptFeedback": {"blockReason": ""}},
        {"error": {"code": 503, "status": "UNAVAILABLE", "details": [{"retryDelay": "3s"}]}},
        {"candidates": [{"finishReason": "STOP"}]},
    ],
}


def deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


JUNK: list[Any] = [
    None,
    True,
    -1,
    1.5,
    1e308,
    10**18,
    "",
    "x",
    "9" * 5000,
    [],
    {},
    [1],
    [{}],
    {"a": 1},
]


def paths(value: object, at: Path = ()) -> Iterator[Path]:
    yield at
    held: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        held = list(value.items())
    elif isinstance(value, list):
        held = list(enumerate(value))
    for key, inner in held:
        yield from paths(inner, (*at, key))


def put(value: Any, at: Path, junk: object) -> Any:  # noqa: ANN401 - any JSON value
    if not at:
        return junk
    changed = value.copy()
    changed[at[0]] = put(value[at[0]], at[1:], junk)
    return changed


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """A protocol's stream, with or without its error, one value of it replaced."""
    protocol = draw(st.sampled_from(sorted(STREAMS)))
    kept = draw(st.booleans())
    stream = [one for one in STREAMS[protocol] if kept or not one.get("error")]
    index = draw(st.integers(0, len(stream) - 1))
    at = draw(st.sampled_from(list(paths(stream[index]))))
    junk = draw(st.sampled_from([*JUNK, deep(200)]))
    stream = [*stream[:index], put(stream[index], at, junk), *stream[index + 1 :]]
    return protocol, [orjson.dumps(one) for one in stream]


def play(protocol: str, frames: list[bytes]) -> list[ProviderEvent]:
    wire = PROTOCOLS[protocol]
    state, events = wire.start(), list[ProviderEvent]()
    for data in frames:
        state, told = wire.step(state, Frame(data))
        events += told
    return [*events, *wire.finish(state)]


def typed(event: ProviderEvent) -> bool:
    """Names and texts are texts: what is durable later would refuse anything else."""
    named = [getattr(event, one.name) for one in fields(event) if one.type is str]
    metadata = getattr(event, "metadata", None)
    return all(isinstance(value, str) for value in named) and (
        metadata is None or isinstance(metadata, dict)
    )


@settings(max_examples=600, deadline=None)
@given(mutated())
def test_one_wrong_value_ends_no_stream_in_a_crash(case: tuple[str, list[bytes]]) -> None:
    protocol, frames = case

    events = play(protocol, frames)

    assert all(map(typed, events))
    ends = [one for one in events if isinstance(one, StepFinish | ProviderFailure)]
    assert ends == events[-1:]


@pytest.mark.parametrize("protocol", sorted(STREAMS))
def test_every_value_of_a_stream_may_be_nested_too_deep(protocol: str) -> None:
    """What JSON can be read may still be deeper than can be written again."""
    nested = b"[" * 600 + b"]" * 600
    stream = STREAMS[protocol]
    for index, one in enumerate(stream):
        for at in paths(one):
            marked = orjson.dumps(put(one, at, "@deep@")).replace(b'"@deep@"', nested)
            before, after = stream[:index], stream[index + 1 :]
            frames = [*map(orjson.dumps, before), marked, *map(orjson.dumps, after)]

            assert all(map(typed, play(protocol, frames)))


def test_what_is_nested_too_deep_to_be_read_back_is_never_kept() -> None:
    """A reader of the log stops at 200 levels: what passes here must stay well below."""
    fits, over = "[" * 128 + "]" * 128, "[" * 129 + "]" * 129

    assert parse_arguments(fits)[0] == orjson.loads(fits)
    kept, why = parse_arguments(over)
    assert (kept, why) == (over, "The arguments are not JSON: nested deeper than 128 levels")
    assert from_json(b'{"a":' * 50 + fits.encode() + b"}" * 50)
    far = {"functionCall": {"name": "n", "partialArgs": [{"jsonPath": "$" + ".a" * 129}]}}
    (end,) = play("gemini", [orjson.dumps({"candidates": [{"content": {"parts": [far]}}]})])
    assert isinstance(end, ProviderFailure)
    assert end.kind == "malformed-stream"
