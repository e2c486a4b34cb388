"""Recorded Responses exchanges: each answer is a whole turn, and we build the same requests."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from fairlead_llm import openai_responses, sse
from fairlead_schema.provider.events import (
    ProviderEvent,
    ReasoningEnd,
    StepFinish,
    TextChunk,
    ToolCall,
)
from fairlead_schema.provider.request import (
    AssistantTurn,
    ForcedTool,
    Generation,
    MediaPart,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolDefinition,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)

FOLDER = Path(__file__).resolve().parents[3].parent / "shared" / "recordings" / "openai-responses"
ABSENT = pytest.param(None, marks=pytest.mark.skip(reason=f"no recordings at {FOLDER}"))
RECORDINGS = [pytest.param(path, id=path.stem) for path in sorted(FOLDER.glob("*/*.json"))]
# The history of the other recording comes from an answer, so it has its own test.
PLAIN = [
    recording for recording in RECORDINGS if recording.id != "gpt-5-5-reasoning-continuation.2"
]
CONTROLS = {"max_output_tokens", "temperature", "prompt_cache_key", "model", "input", "stream"}
# Fields that we send, and that the recorded client left to the server's default.
OUR_DEFAULTS = {"store": False, "include": ["reasoning.encrypted_content"]}


def read(path: Path) -> dict[str, Any]:
    recording: dict[str, Any] = orjson.loads(path.read_bytes())
    return recording


def read_recording(stem: str) -> dict[str, Any]:
    path = FOLDER / "openai" / f"{stem}.json"
    if not path.exists():
        pytest.skip(f"no recording at {path}")
    return read(path)


def play(body: bytes, size: int) -> list[ProviderEvent]:
    parser, state = sse.START, openai_responses.start()
    events: list[ProviderEvent] = []
    for at in range(0, len(body), size):
        parser, frames = sse.feed(parser, body[at : at + size])
        for frame in frames:
            state, new_events = openai_responses.step(state, frame)
            events += new_events
    return [*events, *openai_responses.finish(state)]


def answer(recording: dict[str, Any]) -> list[ProviderEvent]:
    body = recording["response"]["body_text"].encode()
    return play(body, len(body))


def canonical_request(body: dict[str, Any]) -> ModelRequest:
    """The canonical request of a recorded body."""
    first, *rest = body["input"]
    system = (first["content"],) if first.get("role") == "system" else ()
    choice = body.get("tool_choice")
    return ModelRequest(
        body["model"],
        system=system,
        turns=tuple(turn(item) for item in (rest if system else body["input"])),
        tools=tuple(
            ToolDefinition(tool["name"], tool["description"], tool["parameters"])
            for tool in body.get("tools", ())
        ),
        tool_choice=ForcedTool(choice["name"]) if choice else "auto",
        generation=Generation(body.get("max_output_tokens"), body.get("temperature")),
        cache_key=body.get("prompt_cache_key"),
        options={n: body[n] for n in body.keys() - CONTROLS - {"tools", "tool_choice"}},
    )


def turn(item: dict[str, Any]) -> Turn:
    match item:
        case {"role": "user", "content": [{"text": str(text)}]}:
            return UserTurn((TextPart(text),))
        case {"role": "assistant", "content": [{"text": str(text)}]}:
            return AssistantTurn((TextPart(text),))
        case {"type": "function_call"}:
            arguments = orjson.loads(item["arguments"])
            return AssistantTurn((ToolCallPart(item["call_id"], item["name"], arguments),))
        case {"type": "function_call_output", "output": str(output)}:
            return ToolTurn(ToolResultPart(item["call_id"], "", "text", output))
        case {"type": "function_call_output", "output": [text, image]}:
            parts = (TextPart(text["text"]), MediaPart(image["image_url"], "image/png"))
            return ToolTurn(ToolResultPart(item["call_id"], "", "content", parts))
        case _:
            raise AssertionError(f"unexpected item: {item}")


@pytest.mark.parametrize("path", RECORDINGS or [ABSENT])
def test_a_recorded_answer_is_one_finished_turn_with_its_usage(path: Path) -> None:
    events = answer(read(path))

    end = events[-1]
    assert isinstance(end, StepFinish)
    assert None not in {end.usage.input, end.usage.output, end.usage.cache_read, end.usage.total}
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert end.finish == ("tool-calls" if calls else "stop")
    assert all(call.input == {"city": "Paris"} and call.invalid is None for call in calls)
    assert calls or any(isinstance(event, TextChunk) for event in events)


@pytest.mark.parametrize("path", RECORDINGS or [ABSENT])
def test_a_recorded_answer_reads_the_same_in_any_pieces(path: Path) -> None:
    body = read(path)["response"]["body_text"].encode()

    whole = play(body, len(body))

    assert all(play(body, size) == whole for size in (1, 7, 64))
    assert play(body.replace(b"\n", b"\r\n"), 5) == whole


@pytest.mark.parametrize("path", RECORDINGS or [ABSENT])
def test_a_recorded_answer_cut_before_its_end_is_truncated(path: Path) -> None:
    body = read(path)["response"]["body_text"].encode()

    last = play(body[: body.index(b"event: response.completed")], 1000)[-1]

    assert getattr(last, "kind", None) == "stream-truncated"


@pytest.mark.parametrize("path", PLAIN or [ABSENT])
def test_a_recorded_request_is_the_one_we_build(path: Path) -> None:
    body = read(path)["request"]["body"]

    request_body = openai_responses.body(canonical_request(body))

    assert {name: request_body[name] for name in body} == body
    assert {
        name: request_body[name] for name in request_body.keys() - body.keys()
    }.items() <= OUR_DEFAULTS.items()


def test_a_recorded_reasoning_continues_byte_for_byte() -> None:
    first = answer(read_recording("gpt-5-5-reasoning-continuation.1"))
    recorded_body = read_recording("gpt-5-5-reasoning-continuation.2")["request"]["body"]
    reasoning_end = next(event for event in first if isinstance(event, ReasoningEnd))
    text = "".join(event.text for event in first if isinstance(event, TextChunk))

    request_body = openai_responses.body(
        ModelRequest(
            "gpt-5.5",
            turns=(
                UserTurn((TextPart("Think briefly, then reply exactly with: Hello!"),)),
                AssistantTurn((ReasoningPart("", reasoning_end.metadata), TextPart(text))),
                UserTurn((TextPart("Now reply exactly with: Done."),)),
            ),
            generation=Generation(max_tokens=40),
            options={name: recorded_body[name] for name in ("reasoning", "text")},
        )
    )

    assert request_body == recorded_body


def test_the_second_identical_call_reads_the_cache() -> None:
    name = "cache-reports-cached-tokens-on-identical-second-call"
    first, second = (answer(read_recording(f"{name}.{n}"))[-1] for n in (1, 2))

    assert isinstance(first, StepFinish)
    assert isinstance(second, StepFinish)
    assert (second.usage.cache_read or 0) > 0
    assert (first.usage.input or 0) > (second.usage.input or 0)
