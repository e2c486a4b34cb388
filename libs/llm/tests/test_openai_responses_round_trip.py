"""Messages of the Responses API go back unchanged: phase, parts, citations, ids if stored."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from fairlead_llm import openai_responses, sse
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import ProviderEvent, TextChunk, TextEnd
from fairlead_schema.provider.request import (
    AssistantTurn,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    UserTurn,
)

FOLDER = Path(__file__).resolve().parents[3].parent / "shared" / "recordings" / "openai-responses"
RECORDINGS_WITH_PHASE = [
    pytest.param(path, id=path.stem)
    for path in sorted(FOLDER.glob("*/*.json"))
    if '\\"phase\\"' in path.read_text()
]
ABSENT = pytest.param(None, marks=pytest.mark.skip(reason=f"no recordings at {FOLDER}"))
CITATIONS = [{"type": "url_citation", "url": "https://x", "start_index": 0, "end_index": 1}]
MESSAGE: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [
        {"type": "output_text", "text": "one", "annotations": CITATIONS},
        {"type": "refusal", "refusal": "two"},
    ],
}


def play(*events: dict[str, Any]) -> list[ProviderEvent]:
    state, provider_events = openai_responses.start(), list[ProviderEvent]()
    for event in events:
        state, new_events = openai_responses.step(state, Frame(orjson.dumps(event)))
        provider_events += new_events
    return provider_events


def texts(events: list[ProviderEvent]) -> tuple[TextPart, ...]:
    """The text parts that a session sends again."""
    text_by_id: dict[str, str] = {}
    for event in events:
        if isinstance(event, TextChunk):
            text_by_id[event.id] = text_by_id.get(event.id, "") + event.text
    ends = (event for event in events if isinstance(event, TextEnd))
    return tuple(TextPart(text_by_id[end.id], end.metadata) for end in ends)


def send_again(*parts: TextPart | ReasoningPart | ToolCallPart, **options: object) -> list[Any]:
    request = ModelRequest(
        "gpt-5.5", turns=(UserTurn((TextPart("hi"),)), AssistantTurn(parts)), options=options
    )
    items: list[Any] = openai_responses.body(request)["input"][1:]
    return items


def item_added(**item: object) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": 0, "item": item}


def item_done(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": 0, "item": item}


def delta(kind: str, part: int, text: str) -> dict[str, Any]:
    fields = {"output_index": 0, "content_index": part, "delta": text}
    return {"type": f"response.{kind}.delta"} | fields


def part_done(part: int) -> dict[str, Any]:
    fields = {"output_index": 0, "content_index": part, "part": MESSAGE["content"][part]}
    return {"type": "response.content_part.done"} | fields


STREAM = [
    item_added(type="message", id="msg_1", phase="commentary"),
    delta("output_text", 0, "one"),
    part_done(0),
    delta("refusal", 1, "two"),
    part_done(1),
    item_done(MESSAGE),
]


@pytest.mark.parametrize("events", [STREAM, [item_done(MESSAGE)]], ids=["streamed", "whole"])
def test_a_message_goes_back_whole_with_its_phase_and_citations(
    events: list[dict[str, Any]],
) -> None:
    expected = {name: MESSAGE[name] for name in ("role", "content", "phase")}

    assert send_again(*texts(play(*events))) == [expected]


def test_without_ends_of_parts_the_last_one_still_has_what_it_cites() -> None:
    item = MESSAGE | {"content": MESSAGE["content"][:1]}

    (part,) = texts(play(STREAM[0], STREAM[1], item_done(item)))

    assert part.metadata == {"item_id": "msg_1", "phase": "commentary", "annotations": CITATIONS}


def test_two_messages_of_one_answer_stay_apart() -> None:
    first = TextPart("look", {"item_id": "msg_1", "phase": "commentary"})
    second = TextPart("done", {"item_id": "msg_2", "phase": "final_answer"})

    phases = [item["phase"] for item in send_again(first, second)]

    assert phases == ["commentary", "final_answer"]


def test_text_that_says_nothing_of_itself_is_a_plain_message() -> None:
    """Text of another model or of a failed turn has no metadata."""
    plain = {"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}

    assert send_again(TextPart("hi")) == [plain]


def test_with_stored_state_what_followed_referenced_reasoning_is_named() -> None:
    """O-24: the API refuses a reference to reasoning without the item that follows it."""
    reasoning = ReasoningPart("", {"item_id": "rs_1"})
    call = ToolCallPart("call_1", "look", {}, metadata={"item_id": "fc_1"})

    items = send_again(reasoning, TextPart("hi", {"item_id": "msg_1"}), call, store=True)

    assert [item.get("id") for item in items] == ["rs_1", "msg_1", "fc_1"]
    assert [item["type"] for item in items] == ["item_reference", "message", "function_call"]
    assert "fc_1" not in str(send_again(call))


@pytest.mark.parametrize("path", RECORDINGS_WITH_PHASE or [ABSENT])
def test_a_recorded_message_keeps_its_phase(path: Path) -> None:
    body = orjson.loads(path.read_bytes())["response"]["body_text"].encode()
    _, frames = sse.feed(sse.START, body)
    events = [orjson.loads(frame.data) for frame in frames]
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    messages = [item for item in items if item["type"] == "message"]

    replayed = send_again(*texts(play(*events)))

    assert [item["phase"] for item in replayed] == [item["phase"] for item in messages]
    for ours, theirs in zip(replayed, messages, strict=True):
        assert [part["text"] for part in ours["content"]] == [
            part["text"] for part in theirs["content"]
        ]
