"""Blocks of Anthropic go back unchanged: thinking, signatures, hosted tools, citations."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_llm import anthropic_messages
from fairlead_llm.sse import Frame
from fairlead_schema.provider.events import (
    ReasoningChunk,
    ReasoningEnd,
    ReasoningStart,
    TextChunk,
    TextEnd,
    TextStart,
    ToolCall,
    ToolResult,
)
from fairlead_schema.provider.request import (
    AssistantTurn,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

Block = dict[str, Any]
# The delta type of each field that streams.
DELTA_TYPES = {"text": "text_delta", "thinking": "thinking_delta", "signature": "signature_delta"}


def frames(block: Block, index: int) -> list[Block]:
    """The frames that stream one block."""
    start, deltas = dict(block), []
    for name, kind in DELTA_TYPES.items():
        if isinstance(block.get(name), str):
            start[name] = ""
            deltas.append({"type": kind, name: block[name]})
    citations = start.pop("citations", None) or ()
    deltas += [{"type": "citations_delta", "citation": citation} for citation in citations]
    if block["type"].endswith("tool_use"):
        start["input"] = {}
        json = orjson.dumps(block["input"]).decode()
        deltas += [
            {"type": "input_json_delta", "partial_json": fragment}
            for fragment in (json[:3], json[3:])
        ]
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def assistant_turn(blocks: list[Block]) -> AssistantTurn:
    """The turn as a session stores it: parts in the order of their start."""
    state = anthropic_messages.start()
    parts: list[Any] = []
    texts: dict[str, str] = {}
    for frame in [
        block_frame for at, block in enumerate(blocks) for block_frame in frames(block, at)
    ]:
        state, events = anthropic_messages.step(state, Frame(orjson.dumps(frame)))
        for event in events:
            match event:
                case TextStart(id=id_) | ReasoningStart(id=id_):
                    texts[id_] = ""
                case TextChunk(id=id_, text=text) | ReasoningChunk(id=id_, text=text):
                    texts[id_] += text
                case TextEnd(id=id_):
                    parts.append(TextPart(texts[id_]))
                case ReasoningEnd(id=id_, metadata=metadata):
                    parts.append(ReasoningPart(texts[id_], metadata))
                case ToolCall():
                    parts.append(_call_part(event))
                case ToolResult():
                    parts.append(_result_part(event))
                case _:
                    pass
    return AssistantTurn(tuple(parts))


def _call_part(event: ToolCall) -> ToolCallPart:
    return ToolCallPart(event.id, event.name, event.input, event.executed, event.metadata)


def _result_part(event: ToolResult) -> ToolResultPart:
    """A session stores a failed result as text, so only the metadata has the original."""
    if event.error:
        return ToolResultPart(event.id, "t", "error", {"error": "no"}, event.metadata)
    return ToolResultPart(event.id, "t", "json", event.value, event.metadata)


def round_trip(blocks: list[Block]) -> list[Block]:
    request = ModelRequest("m", turns=(assistant_turn(blocks),), options={"cache": False})
    content: list[Block] = anthropic_messages.body(request)["messages"][0]["content"]
    return content


THINKING = {"type": "thinking", "thinking": "Hm …\n", "signature": "EqQBCkYIARgB/+=="}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3"}
TEXT = {"type": "text", "text": "Yes: 22 °C."}
CITED_TEXT = TEXT | {
    "citations": [{"type": "char_location", "cited_text": "a", "document_index": 0}]
}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"a": [1, {"b": None}]}}
CALL_BY_CODE = CALL | {"caller": {"type": "code_execution_20260120", "tool_id": "srv_1"}}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
SEARCH_RESULT = {
    "type": "web_search_tool_result",
    "tool_use_id": "srv_1",
    "content": [{"type": "web_search_result", "encrypted_content": "Eqgf", "page_age": None}],
    "caller": {"type": "direct"},
}
SEARCH_ERROR = SEARCH_RESULT | {
    "content": {"type": "web_search_tool_result_error", "error_code": "x"}
}
MCP = {"type": "mcp_tool_use", "id": "srv_1", "name": "e", "server_name": "s", "input": {}}
ECHO = {
    "type": "mcp_tool_result",
    "tool_use_id": "srv_1",
    "is_error": True,
    "content": [{"type": "text", "text": "no"}],
}
UNKNOWN = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}
RESULT_OF_BEFORE = SEARCH_RESULT | {"tool_use_id": "srv_0"}


@pytest.mark.parametrize(
    "blocks",
    [
        [THINKING, TEXT],
        [THINKING, REDACTED, THINKING, CALL],
        [REDACTED, TEXT, CALL],
        [THINKING | {"thinking": ""}, CALL],
        [THINKING, SEARCH, SEARCH_RESULT, THINKING, CITED_TEXT],
        [SEARCH, SEARCH_ERROR, TEXT],
        [MCP, ECHO, TEXT, CALL_BY_CODE],
        [THINKING, UNKNOWN, THINKING, TEXT],
        [RESULT_OF_BEFORE, TEXT],
        [TEXT, SEARCH],
    ],
    ids=lambda blocks: ",".join(block["type"] for block in blocks),
)
def test_an_answer_goes_back_block_by_block_as_it_came(blocks: list[Block]) -> None:
    """O-08, O-11, O-12: the same model gets its own blocks back unchanged."""
    assert round_trip(blocks) == blocks


def test_a_paused_call_goes_back_without_the_result_that_it_never_had() -> None:
    """A session settles the paused call as failed; the real result follows in the next answer."""
    call = assistant_turn([SEARCH]).content[0]
    assert isinstance(call, ToolCallPart)
    missing_result = ToolResultPart(
        call.call_id, call.name, "error", {"error": "none"}, call.metadata
    )

    request = ModelRequest(
        "m", turns=(AssistantTurn((call, missing_result)), assistant_turn([RESULT_OF_BEFORE]))
    )

    messages = anthropic_messages.body(request)["messages"]
    assert [message["content"] for message in messages] == [[SEARCH], [RESULT_OF_BEFORE]]


TEXTS = st.text(min_size=1).filter(str.strip)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
def test_thinking_and_signatures_of_any_text_come_back_as_they_were(
    thoughts: list[tuple[str, str]],
) -> None:
    blocks = [{"type": "thinking", "thinking": text, "signature": sig} for text, sig in thoughts]

    assert round_trip(blocks) == blocks
