"""Responses frames become canonical events: every kind of item."""

from typing import Any

import orjson
import pytest

from fairlead_llm import openai_responses, sse
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


def frame(kind: str, **fields: object) -> bytes:
    event_line = f"event: {kind}\n".encode()
    return event_line + b"data: " + orjson.dumps({"type": kind, **fields}) + b"\n\n"


def item_added(index: int, **item: object) -> bytes:
    return frame("response.output_item.added", output_index=index, item=item)


def item_done(index: int, **item: object) -> bytes:
    return frame("response.output_item.done", output_index=index, item=item)


def delta(kind: str, index: int, text: str, **fields: object) -> bytes:
    return frame(f"response.{kind}.delta", output_index=index, delta=text, **fields)


def say(text: str, index: int = 0, part: int = 0) -> bytes:
    return delta("output_text", index, text, content_index=part)


def summary(text: str, part: int = 0) -> bytes:
    return delta("reasoning_summary_text", 0, text, summary_index=part)


def end(kind: str = "completed", **response: object) -> bytes:
    return frame(f"response.{kind}", response={"id": "resp_1", "model": "m", **response})


def play(*parts: bytes) -> list[ProviderEvent]:
    """Every event of a body that arrives in these chunks and then ends."""
    parser, state = sse.START, openai_responses.start()
    events: list[ProviderEvent] = []
    for part in parts:
        parser, frames = sse.feed(parser, part)
        for sse_frame in frames:
            state, new_events = openai_responses.step(state, sse_frame)
            events += new_events
    return [*events, *openai_responses.finish(state)]


def finish_of(*parts: bytes) -> StepFinish:
    last = play(*parts)[-1]
    assert isinstance(last, StepFinish)
    return last


def call_of(*parts: bytes) -> ToolCall:
    return next(event for event in play(*parts) if isinstance(event, ToolCall))


def test_a_message_is_one_block_of_text() -> None:
    events = play(
        frame("response.created", response={"id": "resp_1"}),
        item_added(0, type="message", id="msg_1", content=[]),
        say("Hel"),
        say(""),
        say("lo"),
        item_done(
            0, type="message", id="msg_1", content=[{"type": "output_text", "text": "Hello"}]
        ),
        end(),
    )

    assert events == [
        TextStart("text-1"),
        TextChunk("text-1", "Hel"),
        TextChunk("text-1", "lo"),
        TextEnd("text-1", {"item_id": "msg_1"}),
        StepFinish("stop", ProviderUsage(), {"id": "resp_1", "model": "m"}),
    ]


def test_each_part_of_a_message_is_a_block_and_a_refusal_is_text() -> None:
    refusal = delta("refusal", 0, "No.", content_index=1)

    events = play(
        item_added(0, type="message"), say("a"), refusal, item_done(0, type="message"), end()
    )

    ids = [event.id for event in events if isinstance(event, TextStart)]
    assert [event.text for event in events if isinstance(event, TextChunk)] == ["a", "No."]
    assert len(set(ids)) == 2
    assert ids == [event.id for event in events if isinstance(event, TextEnd)]


def test_a_message_that_never_streamed_is_told_when_it_is_done() -> None:
    content = [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}]

    events = play(item_done(0, type="message", content=content), end())

    assert [event.text for event in events if isinstance(event, TextChunk)] == ["a", "b"]


def test_ids_that_change_at_every_event_do_not_split_an_item() -> None:
    events = play(
        item_added(0, type="message", id="x1"),
        delta("output_text", 0, "a", item_id="x2", content_index=0),
        delta("output_text", 0, "b", item_id="x3", content_index=0),
        item_done(0, type="message", id="x4"),
        end(),
    )

    assert sum(isinstance(event, TextStart) for event in events) == 1


def test_reasoning_without_a_word_keeps_its_final_encrypted_content() -> None:
    events = play(
        item_added(0, type="reasoning", id="rs_1", encrypted_content="early", summary=[]),
        item_done(0, type="reasoning", id="rs_1", encrypted_content="final", summary=[]),
        end(output=[{"type": "reasoning", "encrypted_content": "again"}]),
    )

    assert events[:2] == [
        ReasoningStart("reasoning-0"),
        ReasoningEnd("reasoning-0", {"item_id": "rs_1", "encrypted_content": "final"}),
    ]


def test_summaries_of_one_item_are_blocks_that_share_its_id() -> None:
    events = play(
        item_added(0, type="reasoning", id="rs_1"),
        *(summary("One ", 0), summary("two", 0), summary("Three", 1)),
        item_done(0, type="reasoning", id="rs_1", encrypted_content="x"),
        end(),
    )

    assert [event.text for event in events if isinstance(event, ReasoningChunk)] == [
        "One ",
        "two",
        "Three",
    ]
    assert [event.metadata for event in events if isinstance(event, ReasoningEnd)] == [
        {"item_id": "rs_1"},
        {"item_id": "rs_1", "encrypted_content": "x"},
    ]


def test_a_raw_chain_of_thought_is_marked() -> None:
    reasoning = delta("reasoning_text", 0, "hm", content_index=0)

    events = play(item_added(0, type="reasoning"), reasoning, item_done(0, type="reasoning"), end())

    assert events[1:3] == [
        ReasoningChunk("reasoning-0", "hm"),
        ReasoningEnd("reasoning-0", {"raw": True}),
    ]


def test_reasoning_that_never_streamed_is_told_when_it_is_done() -> None:
    parts = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]

    events = play(item_done(0, type="reasoning", id="rs_1", summary=parts), end())

    assert [event.text for event in events if isinstance(event, ReasoningChunk)] == ["a", "b"]
    assert len({event.id for event in events if isinstance(event, ReasoningEnd)}) == 2


def test_a_function_call_streams_its_input_and_is_called_by_its_call_id() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look"}

    events = play(
        item_added(0, **call, arguments=""),
        *(delta("function_call_arguments", 0, part) for part in ('{"n"', ":1}")),
        frame("response.function_call_arguments.done", output_index=0, arguments='{"n":1}'),
        item_done(0, **call, arguments='{"n":1}'),
        end(),
    )

    assert events == [
        ToolInputStart("call_1", "look"),
        ToolInputChunk("call_1", '{"n"'),
        ToolInputChunk("call_1", ":1}"),
        ToolInputEnd("call_1"),
        ToolCall("call_1", "look", {"n": 1}, metadata={"item_id": "fc_1"}),
        StepFinish("tool-calls", ProviderUsage(), {"id": "resp_1", "model": "m"}),
    ]


def test_parallel_calls_that_interleave_keep_their_arguments_apart() -> None:
    kind = "function_call_arguments"

    events = play(
        item_added(0, type="function_call", call_id="a", name="x"),
        item_added(1, type="function_call", call_id="b", name="y"),
        *(delta(kind, 1, "[2"), delta(kind, 0, "[1"), delta(kind, 1, "]"), delta(kind, 0, "]")),
        item_done(1, type="function_call", call_id="b", name="y"),
        item_done(0, type="function_call", call_id="a", name="x"),
        end(),
    )

    calls = [(event.id, event.input) for event in events if isinstance(event, ToolCall)]
    assert calls == [("b", [2]), ("a", [1])]


def test_a_call_without_arguments_has_an_empty_input() -> None:
    assert call_of(item_done(0, type="function_call", call_id="a", name="x"), end()).input == {}


def test_arguments_that_are_not_json_are_kept_with_their_fault() -> None:
    call = call_of(
        item_done(0, type="function_call", call_id="a", name="x", arguments="{oops"), end()
    )

    assert (call.input, call.invalid is not None) == ("{oops", True)


def test_a_call_without_any_id_gets_one_that_no_other_turn_has() -> None:
    def mint_call_id(answer: str) -> str:
        created = frame("response.created", response={"id": answer})
        return call_of(created, item_done(0, type="function_call", name="x"), end()).id

    assert mint_call_id("resp_1") != mint_call_id("resp_2")


def test_a_custom_call_has_free_text_and_goes_back_as_it_came() -> None:
    item = {"type": "custom_tool_call", "id": "ct_1", "call_id": "c", "name": "sh", "input": "ls"}

    events = play(
        item_added(0, **item), delta("custom_tool_call_input", 0, "ls"), item_done(0, **item), end()
    )

    metadata = {"item_id": "ct_1", "item": item}
    assert ToolCall("c", "sh", "ls", metadata=metadata) in events
    assert finish_of(item_done(0, **item), end()).finish == "tool-calls"


@pytest.mark.parametrize(
    ("item", "executed"),
    [
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, False),
        ({"type": "apply_patch_call", "operation": {"type": "delete_file"}}, False),
        ({"type": "shell_call", "action": {}, "environment": {"type": "local"}}, False),
        ({"type": "shell_call", "action": {}, "environment": {"type": "container"}}, True),
        ({"type": "tool_search_call", "arguments": {}, "execution": "client"}, False),
        ({"type": "tool_search_call", "arguments": {}, "execution": "server"}, True),
        ({"type": "something_new"}, True),
    ],
)
def test_an_item_is_ours_to_answer_or_the_providers(
    item: dict[str, Any], *, executed: bool
) -> None:
    call = call_of(item_done(0, id="i_1", call_id="c_1", **item), end())

    assert (call.id, call.executed) == ("c_1", executed)


def test_a_hosted_tool_is_a_call_and_a_result_that_is_the_whole_item() -> None:
    item = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "cats"},
    }

    events = play(
        item_added(0, type="web_search_call", id="ws_1", status="in_progress"),
        frame("response.web_search_call.searching", output_index=0, item_id="ws_1"),
        item_done(0, **item),
        end(),
    )

    assert events[:-1] == [
        ToolInputStart("ws_1", "web_search"),
        ToolInputEnd("ws_1"),
        ToolCall("ws_1", "web_search", item["action"], executed=True, metadata={"item_id": "ws_1"}),
        ToolResult("ws_1", item, metadata={"item_id": "ws_1"}),
    ]
    assert getattr(events[-1], "finish", None) == "stop"


def test_a_hosted_tool_that_failed_has_an_error_for_a_result() -> None:
    code = {"type": "code_interpreter_call", "id": "ci_1", "code": "1/0", "status": "failed"}

    events = play(
        item_added(0, type="code_interpreter_call", id="ci_1"),
        delta("code_interpreter_call_code", 0, "1/0"),
        item_done(0, **code),
        end(),
    )

    assert ToolInputChunk("ci_1", "1/0") in events
    result = next(event for event in events if isinstance(event, ToolResult))
    assert (result.error, result.value) == (True, code)
    assert call_of(item_done(0, **code), end()).input == {"code": "1/0"}


def test_items_that_share_an_index_are_apart() -> None:
    events = play(
        item_added(0, type="message"), say("a"), item_added(0, type="message"), say("b"), end()
    )

    assert len({event.id for event in events if isinstance(event, TextStart)}) == 2
