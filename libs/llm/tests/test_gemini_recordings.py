"""Recorded exchanges with Gemini: answers read exactly, requests built again."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from fairlead_llm import gemini, sse
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    ProviderUsage,
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
    TextPart,
    ToolCallPart,
    ToolDefinition,
    UserTurn,
)

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "recordings"
FOLDER = SHARED / "gemini" / "google"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no recordings at {FOLDER}")

MODEL = "gemini-2.5-flash"
CACHE = "cache-reports-cachedcontenttokencount-on-identical-second-call"
IMAGE = "gemini-2-5-flash-image"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CONCISE = (
    "You are a concise, factual assistant. Answer precisely and avoid filler. "
    "Cite numbers when known."
)
WEATHER = ToolDefinition(
    "get_weather",
    "Get current weather for a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)


def user(*content: str | MediaPart) -> UserTurn:
    return UserTurn(tuple(TextPart(part) if isinstance(part, str) else part for part in content))


def cold(max_tokens: int) -> Generation:
    return Generation(max_tokens, temperature=0)


WORDS = (
    "The image contains exactly three lowercase English words. "
    "Read them left to right and reply with only those words."
)
REQUESTS = {
    f"{CACHE}.1": ModelRequest(MODEL, (CONCISE,), (user("Say hi."),), generation=cold(16)),
    IMAGE: ModelRequest(
        MODEL,
        ("Read images carefully. Reply only with the visible text.",),
        (user(WORDS, MediaPart(f"data:image/png;base64,{PNG}", "image/png")),),
        generation=cold(160),
    ),
    "streams-text": ModelRequest(
        MODEL, ("You are concise.",), (user("Reply with exactly: Hello!"),), generation=cold(80)
    ),
    "streams-tool-call": ModelRequest(
        MODEL,
        ("Call tools exactly as requested.",),
        (user("Call get_weather with city exactly Paris."),),
        tools=(WEATHER,),
        tool_choice=ForcedTool("get_weather"),
        generation=cold(80),
    ),
}
REQUESTS[f"{CACHE}.2"] = REQUESTS[f"{CACHE}.1"]
CALL_ID = "NyTxaYuTJ_OW_uMPgIPKgAg-0"
# The text, the ids of calls, and the usage of each answer.
ANSWERS: dict[str, tuple[str, list[str], ProviderUsage]] = {
    f"{CACHE}.1": ("Hi.", [], ProviderUsage(1200, output=2, total=1202)),
    f"{CACHE}.2": ("Hi.", [], ProviderUsage(100, cache_read=1100, output=2, total=1202)),
    IMAGE: ("jiggling restroom prison", [], ProviderUsage(291, output=5, reasoning=106, total=402)),
    "streams-text": ("Hello!", [], ProviderUsage(11, output=2, reasoning=16, total=29)),
    "streams-tool-call": ("", [CALL_ID], ProviderUsage(55, output=15, reasoning=45, total=115)),
}


def read(name: str) -> dict[str, Any]:
    recording: dict[str, Any] = orjson.loads((FOLDER / f"{name}.json").read_bytes())
    return recording


def play(body: bytes, size: int) -> list[ProviderEvent]:
    parser, state = sse.START, gemini.start()
    events: list[ProviderEvent] = []
    for at in range(0, len(body), size):
        parser, frames = sse.feed(parser, body[at : at + size])
        for frame in frames:
            state, new_events = gemini.step(state, frame)
            events += new_events
    return [*events, *gemini.finish(state)]


def test_every_recording_has_its_expectations() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(ANSWERS) == set(REQUESTS)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_recorded_answer_is_read_exactly_in_any_pieces(name: str) -> None:
    body = read(name)["response"]["body_text"].encode()
    text, ids, usage = ANSWERS[name]

    events = play(body, len(body))

    end = events[-1]
    assert isinstance(end, StepFinish)
    assert "".join(event.text for event in events if isinstance(event, TextChunk)) == text
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert [(call.id, call.input) for call in calls] == [(id_, {"city": "Paris"}) for id_ in ids]
    assert (end.usage, end.finish) == (usage, "tool-calls" if ids else "stop")
    assert all(play(body, size) == events for size in (1, 7, 64))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_recorded_answer_that_never_arrives_whole_is_truncated(name: str) -> None:
    body = read(name)["response"]["body_text"].encode()

    last = play(body[: len(body) // 2], 1000)[-1]

    assert isinstance(last, ProviderFailure)
    assert last.kind == "stream-truncated"


@pytest.mark.parametrize("name", REQUESTS)
def test_a_recorded_request_is_built_field_by_field(name: str) -> None:
    recording = read(name)["request"]

    assert gemini.body(REQUESTS[name]) == recording["body"]
    assert gemini.path(REQUESTS[name]) == recording["url_path"]


def test_a_recorded_signature_goes_back_on_its_call() -> None:
    body = read("streams-tool-call")["response"]["body_text"].encode()
    chunk = orjson.loads(body.removeprefix(b"data: "))
    call = next(event for event in play(body, 1000) if isinstance(event, ToolCall))
    turn = AssistantTurn((ToolCallPart(call.id, call.name, call.input, metadata=call.metadata),))

    parts = gemini.body(ModelRequest(MODEL, turns=(turn,)))["contents"][0]["parts"]

    recording = chunk["candidates"][0]["content"]["parts"][0]
    assert parts[0].pop("thoughtSignature") == recording["thoughtSignature"]
    assert parts[0]["functionCall"] == recording["functionCall"] | {"id": CALL_ID}
