"""Recorded exchanges with Anthropic: answers read exactly, requests built again."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from fairlead_llm import anthropic_messages, failure, sse
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
    ToolResultPart,
    ToolTurn,
    UserTurn,
)

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "recordings"
FOLDER = SHARED / "anthropic-messages" / "anthropic"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no recordings at {FOLDER}")

HAIKU, OPUS = "claude-haiku-4-5-20251001", "claude-opus-4-7"
ORDER = "accepts-malformed-assistant-tool-order-with-default-patch"
CACHE = "cache-writes-then-reads-cache-control-on-identical-second-call"
LOOP = "claude-opus-4-7-drives-a-tool-loop"
REJECTED = "rejects-malformed-assistant-tool-order-without-patch"
IMAGE = "opus-4-7-image-tool-result"

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
BARE = ToolDefinition("get_weather", "Get weather", {"type": "object", "properties": {}})
SCREENSHOT = ToolDefinition(
    "read_screenshot",
    "Capture a screenshot of the current screen.",
    {"type": "object", "properties": {}, "additionalProperties": False},
)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CONCISE = (
    "You are a concise, factual assistant. Answer precisely and avoid filler. "
    "Cite numbers when known."
)
LOOP_CALL_ID = "toolu_01M8nJQQMxqpv1VaPYuJKT4j"


def user(text: str) -> UserTurn:
    return UserTurn((TextPart(text),))


def call_part(id_: str, name: str, **input_: str) -> ToolCallPart:
    return ToolCallPart(id_, name, input_)


def result(id_: str, kind: str, value: object, name: str = "get_weather") -> ToolTurn:
    return ToolTurn(ToolResultPart(id_, name, kind, value))  # type: ignore[arg-type]


# The server refused this history in its original order, so we send the calls last.
DISORDER = (
    AssistantTurn(
        (call_part("call_1", "get_weather", city="Paris"), TextPart("I will check the weather."))
    ),
    result("call_1", "json", {"temperature": "72F"}),
    user("Use that result to answer briefly."),
)
LOOP_SYSTEM = ("Use the get_weather tool, then answer in one short sentence.",)
QUESTION = user("What is the weather in Paris?")
IMAGE_RESULT = [
    {"type": "text", "text": "Image read successfully"},
    MediaPart(f"data:image/png;base64,{PNG}", "image/png"),
]
REQUESTS = {
    ORDER: ModelRequest(HAIKU, turns=DISORDER, tools=(BARE,)),
    f"{CACHE}.1": ModelRequest(
        HAIKU, (CONCISE,), (user("Say hi."),), generation=Generation(16, temperature=0)
    ),
    f"{LOOP}.1": ModelRequest(
        OPUS, LOOP_SYSTEM, (QUESTION,), tools=(WEATHER,), generation=Generation(80)
    ),
    f"{LOOP}.2": ModelRequest(
        OPUS,
        LOOP_SYSTEM,
        (
            QUESTION,
            AssistantTurn((call_part(LOOP_CALL_ID, "get_weather", city="Paris"),)),
            result(LOOP_CALL_ID, "json", {"temperature": 22, "condition": "sunny"}),
        ),
        tools=(WEATHER,),
        generation=Generation(80),
    ),
    IMAGE: ModelRequest(
        OPUS,
        ("Read images carefully. Reply only with the visible text, lowercase, no punctuation.",),
        (
            user("Use the read_screenshot tool, then reply with the words shown."),
            AssistantTurn((call_part("call_screenshot_1", "read_screenshot"),)),
            result("call_screenshot_1", "content", IMAGE_RESULT, "read_screenshot"),
        ),
        tools=(SCREENSHOT,),
        generation=Generation(40),
    ),
    "streams-text": ModelRequest(
        HAIKU,
        ("You are concise.",),
        (user("Reply with exactly: Hello!"),),
        generation=Generation(20, temperature=0),
    ),
    "streams-tool-call": ModelRequest(
        HAIKU,
        ("Call tools exactly as requested.",),
        (user("Call get_weather with city exactly Paris."),),
        tools=(WEATHER,),
        tool_choice=ForcedTool("get_weather"),
        generation=Generation(80, temperature=0),
    ),
}
REQUESTS[f"{CACHE}.2"] = REQUESTS[f"{CACHE}.1"]

PARIS = {"city": "Paris"}
ANSWERS: dict[str, tuple[str, list[ToolCall], ProviderUsage]] = {
    ORDER: ("The weather in Paris is currently 72°F.", [], ProviderUsage(638, 0, 0, 14, total=652)),
    f"{CACHE}.1": ("Hi.", [], ProviderUsage(9, 0, 5752, 5, total=5766)),
    f"{CACHE}.2": ("Hi.", [], ProviderUsage(9, 5752, 0, 5, total=5766)),
    f"{LOOP}.1": (
        "",
        [ToolCall(LOOP_CALL_ID, "get_weather", PARIS)],
        ProviderUsage(798, 0, 0, 66, total=864),
    ),
    f"{LOOP}.2": ("Paris is currently sunny at 22°C.", [], ProviderUsage(895, 0, 0, 19, total=914)),
    IMAGE: ("jiggling restroom prison", [], ProviderUsage(1005, 0, 0, 13, total=1018)),
    "streams-text": ("Hello!", [], ProviderUsage(18, 0, 0, 5, total=23)),
    "streams-tool-call": (
        "",
        [ToolCall("toolu_012rmAruviySvUXSjgCPWVRu", "get_weather", PARIS)],
        ProviderUsage(677, 0, 0, 33, total=710),
    ),
}


def read(name: str) -> dict[str, Any]:
    recording: dict[str, Any] = orjson.loads((FOLDER / f"{name}.json").read_bytes())
    return recording


def play(body: bytes, size: int) -> list[ProviderEvent]:
    parser, state = sse.START, anthropic_messages.start()
    events: list[ProviderEvent] = []
    for at in range(0, len(body), size):
        parser, frames = sse.feed(parser, body[at : at + size])
        for frame in frames:
            state, new_events = anthropic_messages.step(state, frame)
            events += new_events
    return [*events, *anthropic_messages.finish(state)]


def without_cache_marks(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The value without cache marks, because their places differ by policy."""
    if isinstance(value, list):
        return [without_cache_marks(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_cache_marks(field) for name, field in value.items() if name != "cache_control"
    }


def merge_neighbours(messages: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Merge neighbouring messages of one role, as the server does."""
    whole: list[tuple[str, Any]] = []
    for message in messages:
        if whole and whole[-1][0] == message["role"]:
            whole[-1] = (message["role"], [*whole[-1][1], *message["content"]])
        else:
            whole.append((message["role"], message["content"]))
    return whole


def test_every_recording_has_its_expectations() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {*ANSWERS, REJECTED}
    assert set(REQUESTS) == set(ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_recorded_answer_is_read_exactly_in_any_pieces(name: str) -> None:
    body = read(name)["response"]["body_text"].encode()
    text, calls, usage = ANSWERS[name]

    events = play(body, len(body))

    end = events[-1]
    assert isinstance(end, StepFinish)
    assert "".join(event.text for event in events if isinstance(event, TextChunk)) == text
    assert [event for event in events if isinstance(event, ToolCall)] == calls
    assert (end.usage, end.finish) == (usage, "tool-calls" if calls else "stop")
    assert (end.metadata or {})["model"] == read(name)["model"]
    assert all(play(body, size) == events for size in (1, 7, 64))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_recorded_answer_cut_before_message_stop_is_truncated(name: str) -> None:
    body = read(name)["response"]["body_text"].encode()

    last = play(body[: body.index(b"event: message_stop")], 1000)[-1]

    assert isinstance(last, ProviderFailure)
    assert last.kind == "stream-truncated"


@pytest.mark.parametrize("name", REQUESTS)
def test_a_recorded_request_is_built_field_by_field(name: str) -> None:
    recording = read(name)["request"]

    request_body = without_cache_marks(anthropic_messages.body(REQUESTS[name]))

    expected = without_cache_marks(recording["body"])
    assert merge_neighbours(request_body.pop("messages")) == merge_neighbours(
        expected.pop("messages")
    )
    assert request_body == expected
    assert anthropic_messages.path(REQUESTS[name]) == recording["url_path"]
    assert anthropic_messages.headers(None).items() <= recording["headers"].items()


def test_where_a_recorded_system_part_is_marked_ours_is_too() -> None:
    """O-27: tools first, then system, then the latest user message."""
    recording = read(f"{CACHE}.1")["request"]["body"]

    assert anthropic_messages.body(REQUESTS[f"{CACHE}.1"])["system"] == recording["system"]


def test_a_recorded_refusal_is_an_invalid_request() -> None:
    response = read(REJECTED)["response"]

    refusal = failure.http_failure(response["status"], response["headers"], response["body_text"])

    assert (refusal.kind, refusal.status, refusal.retryable) == ("invalid-request", 400, False)
    assert refusal.message.startswith("messages.1: `tool_use` ids were found without")
