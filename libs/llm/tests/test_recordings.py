"""Recorded answers of real vendors: each becomes a whole, well-formed turn."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from fairlead_llm import openai_chat, sse
from fairlead_schema.provider.events import ProviderEvent, StepFinish, TextChunk, ToolCall

FOLDER = Path(__file__).resolve().parents[3].parent / "shared" / "recordings" / "openai-chat"
ABSENT = pytest.param(None, marks=pytest.mark.skip(reason=f"no recordings at {FOLDER}"))
RECORDINGS = [
    pytest.param(path, id=f"{path.parent.name}/{path.stem}")
    for path in sorted(FOLDER.glob("*/*.json"))
]


def read(path: Path) -> dict[str, Any]:
    recording: dict[str, Any] = orjson.loads(path.read_bytes())
    return recording


def play(body: bytes, size: int) -> list[ProviderEvent]:
    parser, state = sse.START, openai_chat.start()
    events: list[ProviderEvent] = []
    for at in range(0, len(body), size):
        parser, frames = sse.feed(parser, body[at : at + size])
        for frame in frames:
            state, new_events = openai_chat.step(state, frame)
            events += new_events
    return [*events, *openai_chat.finish(state)]


@pytest.mark.parametrize("path", RECORDINGS or [ABSENT])
def test_a_recorded_answer_is_one_finished_turn_with_its_usage(path: Path) -> None:
    body = read(path)["response"]["body_text"].encode()

    events = play(body, len(body))

    end = events[-1]
    assert isinstance(end, StepFinish)
    assert end.usage.total
    assert end.usage.input
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
def test_a_recorded_answer_cut_before_its_end_marker_is_truncated(path: Path) -> None:
    body = read(path)["response"]["body_text"].encode()

    last = play(body[: body.index(b"data: [DONE]")], 1000)[-1]

    assert getattr(last, "kind", None) == "stream-truncated"
