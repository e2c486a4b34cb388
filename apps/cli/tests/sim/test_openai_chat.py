"""Chat Completions in the simulated provider."""

from typing import Any

import orjson
import pytest

from fairlead_cli.sim import openai_chat
from fairlead_cli.sim.response import build_response
from fairlead_cli.sim.script import HttpRefusal, Script, ScriptedCall, SimRequest, StreamFault

REQUEST = SimRequest("m", "hi", stream=True, include_usage=True)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant_calls(*ids: str) -> dict[str, Any]:
    calls = [{"id": call_id, "type": "function", "function": {}} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tool(call_id: str, text: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def chunks(frames: tuple[bytes, ...]) -> list[dict[str, Any]]:
    return [orjson.loads(frame.removeprefix(b"data: ")) for frame in frames]


def frames_of(script: Script) -> tuple[bytes, ...]:
    return build_response(openai_chat, script, REQUEST, "id-1").frames


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"messages": [user("hi")]},
        {"model": "", "messages": [user("hi")]},
        {"model": "m"},
        {"model": "m", "messages": []},
        {"model": "m", "messages": ["hi"]},
        {"model": "m", "messages": [{"role": "king"}]},
        {"model": "m", "messages": [user("hi"), tool("a")]},
        {"model": "m", "messages": [user("hi"), assistant_calls("a")]},
        {"model": "m", "messages": [user("hi"), assistant_calls("a", "b"), tool("a"), user("x")]},
    ],
)
def test_a_request_that_the_real_thing_refuses_is_refused(body: object) -> None:
    assert openai_chat.refusal_reason(body) is not None


def test_answered_calls_are_accepted() -> None:
    messages = [user("hi"), assistant_calls("a", "b"), tool("b"), tool("a"), user("x")]

    assert openai_chat.refusal_reason({"model": "m", "messages": messages}) is None


def test_the_last_user_text_skips_system_updates_and_media() -> None:
    update = "<system-update>\n[[sim: status=500]]\n</system-update>"
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}

    request = openai_chat.parse_request(
        {
            "model": "m",
            "messages": [
                user(f"hi\n{update}"),
                assistant_calls("a"),
                tool("a", "42"),
                image,
                user(update),
            ],
        }
    )

    assert (request.user_text, request.rounds, request.tool_text) == ("hi", 1, "42")


def test_a_stream_has_a_role_words_a_reason_usage_and_an_end() -> None:
    *frames, end_frame = frames_of(Script(answer="You said: hi"))

    stream_chunks = chunks(tuple(frames))
    assert stream_chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    words = [chunk["choices"][0]["delta"]["content"] for chunk in stream_chunks[1:4]]
    assert words == ["You", " said:", " hi"]
    assert stream_chunks[4]["choices"][0]["finish_reason"] == "stop"
    assert stream_chunks[5]["usage"]["completion_tokens"] == 3
    assert end_frame == b"data: [DONE]\n\n"


def test_tool_calls_stream_in_fragments() -> None:
    stream_chunks = chunks(frames_of(Script(calls=(ScriptedCall("read", '{"a":1}'),)))[1:-3])

    fragments = [chunk["choices"][0]["delta"]["tool_calls"][0] for chunk in stream_chunks]
    assert fragments[0]["function"]["name"] == "read"
    assert "".join(part["function"]["arguments"] for part in fragments) == '{"a":1}'


@pytest.mark.parametrize(
    ("ending", "frame_count", "close"),
    [("cut", 3, "close"), ("drop", 3, "drop"), ("stall", 3, "stall"), ("fail", 4, "close")],
)
def test_a_fault_ends_the_stream_after_its_chunks(
    ending: str, frame_count: int, close: str
) -> None:
    fault = StreamFault(ending, 2)  # type: ignore[arg-type]

    response = build_response(openai_chat, Script("a b c d", fault=fault), REQUEST, "id-1")

    assert (len(response.frames), response.ending) == (frame_count, close)


def test_an_answer_in_one_piece_has_the_same_content() -> None:
    script = Script("hello", "hm", calls=(ScriptedCall("read"),))

    body = orjson.loads(openai_chat.full_body(script, REQUEST, "id-1"))

    message = body["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("hello", "hm")
    assert message["tool_calls"][0]["function"] == {"name": "read", "arguments": "{}"}
    assert body["choices"][0]["finish_reason"] == "tool_calls"


def test_a_refusal_tells_when_to_come_back() -> None:
    response = build_response(
        openai_chat, Script(refusal=HttpRefusal(429, "slow", retry_after_s=2)), REQUEST, "id-1"
    )

    assert (response.status, dict(response.headers)[b"retry-after"]) == (429, b"2")
    assert orjson.loads(response.frames[0])["error"]["type"] == "rate_limit_error"


def test_the_same_request_gives_the_same_bytes() -> None:
    script = Script("a b", calls=(ScriptedCall("read"),))

    assert frames_of(script) == frames_of(script)
