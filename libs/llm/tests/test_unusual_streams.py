"""Shapes of real streams that were read wrongly once (findings E1 to E8)."""

from typing import Any

import orjson
import pytest

from fairlead_llm import anthropic_messages, openai_chat, openai_responses, sse
from fairlead_llm.failure import http_failure, stream_failure
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    ReasoningChunk,
    StepFinish,
    TextChunk,
    ToolCall,
    ToolInputStart,
    ToolResult,
)
from fairlead_schema.provider.request import (
    AssistantTurn,
    ModelRequest,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    ToolTurn,
    UserTurn,
)

HELLO = UserTurn((TextPart("hello"),))
TOO_LARGE = (
    "Request too large for model `llama` in organization `org` on tokens per minute (TPM): Limit"
    " 6000, Requested 10016, please reduce your message size and try again."
)


def play(wire: Any, *events: dict[str, Any]) -> list[ProviderEvent]:  # noqa: ANN401
    state, read = wire.start(), list[ProviderEvent]()
    for event in events:
        state, new_events = wire.step(state, Frame(orjson.dumps(event)))
        read += new_events
    return read


def item(kind: str, index: int, **fields: object) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": fields}


def completed(*output: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"id": "r", "output": list(output)}}


def send_again(events: list[ProviderEvent], *more: ToolTurn) -> list[Any]:
    """The items that go back for the calls and results of an answer."""
    parts: list[ToolCallPart | ToolResultPart] = []
    for event in events:
        if isinstance(event, ToolCall):
            parts.append(
                ToolCallPart(event.id, event.name, event.input, event.executed, event.metadata)
            )
        elif isinstance(event, ToolResult):
            parts.append(
                ToolResultPart(
                    event.id, "", "error" if event.error else "json", event.value, event.metadata
                )
            )
    request = ModelRequest("m", turns=(HELLO, AssistantTurn(tuple(parts)), *more))
    sent: list[Any] = openai_responses.body(request)["input"]
    return sent[1:]


def test_a_hosted_item_that_never_ends_is_taken_from_the_whole_answer() -> None:
    """E1: the content of an `mcp_list_tools` stands only in `response.completed`."""
    whole = {
        "type": "mcp_list_tools",
        "id": "mcpl_1",
        "server_label": "s",
        "tools": [{"name": "t"}],
    }

    events = play(
        openai_responses,
        item("added", 0, type="mcp_list_tools", id="mcpl_1", server_label="s"),
        completed(whole),
    )

    (call,) = [event for event in events if isinstance(event, ToolCall)]
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert (call.executed, result.value) == (True, whole)
    assert send_again(events) == [whole]
    assert isinstance(events[-1], StepFinish)
    assert events[-1].finish == "stop"


def test_a_hosted_item_that_is_nowhere_complete_never_leaves_again() -> None:
    """E1: no hosted item goes back as a function call."""
    events = play(
        openai_responses,
        item("added", 0, type="web_search_call", id="ws_1", status="in_progress"),
        completed(),
    )

    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert result.error
    assert send_again(events) == []


def test_a_hosted_shell_call_and_its_output_are_one_call() -> None:
    """E2: both items have the same call id."""
    call = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "c1",
        "status": "completed",
        "environment": {"type": "container_reference"},
        "action": {"commands": ["ls"]},
    }
    output = {
        "type": "shell_call_output",
        "id": "sho_1",
        "call_id": "c1",
        "status": "completed",
        "output": [{"stdout": "a"}],
    }

    events = play(
        openai_responses,
        item("added", 0, **call),
        item("done", 0, **call),
        item("added", 1, **output),
        item("done", 1, **output),
        completed(call, output),
    )

    assert [event.id for event in events if isinstance(event, ToolInputStart)] == ["c1"]
    assert [event.executed for event in events if isinstance(event, ToolCall)] == [True]
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert result.value == output
    assert send_again(events) == [call, output]


def test_a_hosted_shell_call_without_an_output_is_its_own_result() -> None:
    call = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "c1",
        "environment": {"type": "container_reference"},
        "action": {"commands": ["ls"]},
    }

    events = play(openai_responses, item("done", 0, **call), completed(call))

    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert result.value == call
    assert send_again(events) == [call]


@pytest.mark.parametrize(
    ("kind", "value", "fields"),
    [
        (
            "tool_search_call",
            [{"name": "t"}],
            {
                "type": "tool_search_output",
                "status": "completed",
                "execution": "client",
                "tools": [{"name": "t"}],
            },
        ),
        (
            "apply_patch_call",
            "done",
            {"type": "apply_patch_call_output", "status": "completed", "output": "done"},
        ),
    ],
)
def test_the_last_form_of_an_item_names_its_call(
    kind: str, value: object, fields: dict[str, Any]
) -> None:
    """E4: the call id may change between `added` and `done`; the output has the last one."""
    done = {"type": kind, "id": "x_1", "call_id": "later", "execution": "client", "operation": {}}

    events = play(
        openai_responses,
        item("added", 0, type=kind, id="x_1", call_id="first", execution="client"),
        item("done", 0, **done),
        completed(done),
    )
    answer = ToolTurn(
        ToolResultPart("first", kind, "text" if isinstance(value, str) else "json", value)
    )

    assert send_again(events, answer) == [done, fields | {"call_id": "later"}]


def chat(**delta: object) -> dict[str, Any]:
    return {"id": "a", "choices": [{"delta": delta}]}


def play_chat(*chunks: dict[str, Any]) -> list[ProviderEvent]:
    state, read = openai_chat.start(), list[ProviderEvent]()
    for data in (*(orjson.dumps(chunk) for chunk in chunks), b"[DONE]"):
        state, new_events = openai_chat.step(state, Frame(data))
        read += new_events
    return read


def test_content_in_parts_is_text_and_reasoning() -> None:
    """E3: Mistral sends thinking and text as a list."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}

    events = play_chat(
        chat(content=[thinking]),
        chat(content=[{"type": "text", "text": "so"}, {"type": "reference", "reference_ids": [1]}]),
        chat(content=" it is"),
    )

    reasoning = [event.text for event in events if isinstance(event, ReasoningChunk)]
    text = [event.text for event in events if isinstance(event, TextChunk)]
    assert (reasoning, text) == (["hm"], ["so", " it is"])
    assert isinstance(events[-1], StepFinish)
    assert (events[-1].metadata or {})["unread_content"] == ["reference"]


def test_an_answer_of_unknown_parts_alone_is_a_failure() -> None:
    """E3: an unknown shape is never silently nothing."""
    last = play_chat(chat(content=[{"type": "hologram", "data": "x"}, 7]))[-1]

    assert isinstance(last, ProviderFailure)
    assert "hologram, int" in last.message


def test_a_last_frame_without_its_blank_line_counts_at_the_end() -> None:
    """E5: the body ends with one newline."""
    parser, frames = sse.feed(sse.START, b"data: one\n\ndata: [DONE]\n")

    assert [frame.data for frame in (*frames, *sse.flush(parser))] == [b"one", b"[DONE]"]


@pytest.mark.parametrize("tail", [b"", b"data: {", b": comment\n", b"\n"])
def test_an_unfinished_line_is_no_frame(tail: bytes) -> None:
    parser, _ = sse.feed(sse.START, b"data: one\n\n" + tail)

    assert sse.flush(parser) == []


@pytest.mark.parametrize("status", [413, 429])
def test_a_request_above_the_rate_of_a_minute_is_an_overflow(status: int) -> None:
    """E6: only a smaller request can pass, so no pause and no repetition helps."""
    body = orjson.dumps({"error": {"message": TOO_LARGE, "code": "rate_limit_exceeded"}}).decode()

    refused = http_failure(status, {"retry-after": "2"}, body)

    assert (refused.kind, refused.retryable) == ("context-overflow", False)


def test_such_an_error_inside_a_stream_is_an_overflow_too() -> None:
    error = {"message": TOO_LARGE, "code": "rate_limit_exceeded"}

    assert stream_failure(error, orjson.dumps(error).decode()).kind == "context-overflow"


def hosted_blocks() -> dict[str, list[dict[str, Any]]]:
    def call(id_: str) -> dict[str, Any]:
        return {"type": "server_tool_use", "id": id_, "name": "web_search", "input": {"q": id_}}

    def result(id_: str) -> dict[str, Any]:
        return {"type": "web_search_tool_result", "tool_use_id": id_, "content": [{"url": id_}]}

    text = {"type": "text", "text": "so"}
    return {
        "one after another": [call("a"), result("a"), call("b"), result("b"), text],
        "parallel": [call("a"), call("b"), result("a"), result("b"), text],
        "nested": [call("a"), call("b"), result("b"), result("a"), text],
        "text between": [call("a"), text, result("a"), call("b"), result("b")],
        "three": [call("a"), call("b"), call("c"), result("b"), result("c"), result("a")],
    }


@pytest.mark.parametrize("name", hosted_blocks())
def test_hosted_blocks_go_back_in_the_order_in_which_they_came(name: str) -> None:
    """E7: nested and parallel calls too."""
    blocks = hosted_blocks()[name]
    frames: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "m"}}]
    for index, block in enumerate(blocks):
        frames += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index},
        ]
    events = play(anthropic_messages, *frames, {"type": "message_stop"})

    request = ModelRequest("m", turns=(HELLO, AssistantTurn(_session_parts(events))))
    sent = anthropic_messages.body(request)["messages"][1]["content"]
    assert [_bare(block) for block in sent] == blocks


def _session_parts(
    events: list[ProviderEvent],
) -> tuple[TextPart | ToolCallPart | ToolResultPart, ...]:
    """The parts as a session keeps them: each result directly behind its call."""
    results = {event.id: event for event in events if isinstance(event, ToolResult)}
    parts: list[TextPart | ToolCallPart | ToolResultPart] = []
    for event in events:
        if isinstance(event, TextChunk):
            parts.append(TextPart(event.text))
        elif isinstance(event, ToolCall):
            result = results[event.id]
            parts += [
                ToolCallPart(event.id, event.name, event.input, event.executed, event.metadata),
                ToolResultPart(event.id, event.name, "json", result.value, result.metadata),
            ]
    return tuple(parts)


def _bare(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


def test_sources_and_tools_of_the_vendor_are_kept_as_metadata() -> None:
    """E8: Groq's executed tools, Perplexity's citations, OpenRouter's annotations."""
    events = play_chat(
        {**chat(content="a"), "citations": ["https://x"], "search_results": [{"url": "x"}]},
        {**chat(content="b", annotations=[{"n": 1}]), "citations": ["https://x", "https://y"]},
        chat(annotations=[{"n": 2}], executed_tools=[{"name": "search"}]),
    )

    assert isinstance(events[-1], StepFinish)
    metadata = events[-1].metadata or {}
    assert metadata["citations"] == ["https://x", "https://y"]
    assert metadata["search_results"] == [{"url": "x"}]
    assert metadata["annotations"] == [{"n": 1}, {"n": 2}]
    assert metadata["executed_tools"] == [{"name": "search"}]
