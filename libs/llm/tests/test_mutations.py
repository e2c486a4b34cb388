"""Frames with one wrong value: no protocol raises, and all events keep their types."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, TypeAlias

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json

from fairlead_llm.calls.arguments import parse_arguments
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


def nest(levels: int) -> list[Any]:
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
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        yield from paths(inner, (*at, key))


def put(value: Any, at: Path, junk: object) -> Any:  # noqa: ANN401 - any JSON value
    if not at:
        return junk
    changed = value.copy()
    changed[at[0]] = put(value[at[0]], at[1:], junk)
    return changed


@st.composite
def mutated_streams(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """The stream of a protocol, with or without its error, with one value replaced."""
    protocol = draw(st.sampled_from(sorted(STREAMS)))
    with_error = draw(st.booleans())
    stream = [event for event in STREAMS[protocol] if with_error or not event.get("error")]
    index = draw(st.integers(0, len(stream) - 1))
    at = draw(st.sampled_from(list(paths(stream[index]))))
    junk = draw(st.sampled_from([*JUNK, nest(200)]))
    stream = [*stream[:index], put(stream[index], at, junk), *stream[index + 1 :]]
    return protocol, [orjson.dumps(event) for event in stream]


def play(protocol: str, frames: list[bytes]) -> list[ProviderEvent]:
    wire = PROTOCOLS[protocol]
    state, events = wire.start(), list[ProviderEvent]()
    for data in frames:
        state, new_events = wire.step(state, Frame(data))
        events += new_events
    return [*events, *wire.finish(state)]


def has_typed_fields(event: ProviderEvent) -> bool:
    """Whether text fields hold texts, because durable events refuse other values."""
    texts = [getattr(event, field.name) for field in fields(event) if field.type is str]
    metadata = getattr(event, "metadata", None)
    return all(isinstance(value, str) for value in texts) and (
        metadata is None or isinstance(metadata, dict)
    )


@settings(max_examples=600, deadline=None)
@given(mutated_streams())
def test_one_wrong_value_ends_no_stream_in_a_crash(case: tuple[str, list[bytes]]) -> None:
    protocol, frames = case

    events = play(protocol, frames)

    assert all(map(has_typed_fields, events))
    ends = [event for event in events if isinstance(event, StepFinish | ProviderFailure)]
    assert ends == events[-1:]


@pytest.mark.parametrize("protocol", sorted(STREAMS))
def test_every_value_of_a_stream_may_be_nested_too_deep(protocol: str) -> None:
    """JSON that is readable may still be nested too deeply to be written again."""
    nested = b"[" * 600 + b"]" * 600
    stream = STREAMS[protocol]
    for index, event in enumerate(stream):
        for at in paths(event):
            mutant = orjson.dumps(put(event, at, "@deep@")).replace(b'"@deep@"', nested)
            before, after = stream[:index], stream[index + 1 :]
            frames = [*map(orjson.dumps, before), mutant, *map(orjson.dumps, after)]

            assert all(map(has_typed_fields, play(protocol, frames)))


def test_what_is_nested_too_deep_to_be_read_back_is_never_kept() -> None:
    """The log's reader fails at 200 levels, so the limit here is well below."""
    fits, over = "[" * 128 + "]" * 128, "[" * 129 + "]" * 129

    assert parse_arguments(fits)[0] == orjson.loads(fits)
    value, fault = parse_arguments(over)
    assert (value, fault) == (over, "The arguments are not JSON: nested deeper than 128 levels")
    assert from_json(b'{"a":' * 50 + fits.encode() + b"}" * 50)
    far = {"functionCall": {"name": "n", "partialArgs": [{"jsonPath": "$" + ".a" * 129}]}}
    (end,) = play("gemini", [orjson.dumps({"candidates": [{"content": {"parts": [far]}}]})])
    assert isinstance(end, ProviderFailure)
    assert end.kind == "malformed-stream"
