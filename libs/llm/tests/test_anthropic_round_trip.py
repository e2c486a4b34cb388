"""What Anthropic said goes back to it byte for byte: thinking, signatures, hosted tools, citations."""

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
# Deltas by the field that they add to, as the wire sends each kind of block.
STREAMED = {"text": "text_delta", "thinking": "thinking_delta", "signature": "signature_delta"}


def frames(block: Block, index: int) -> list[Block]:
    """How a whole block is streamed."""
    start, deltas = dict(block), []
    for name, kind in STREAMED.items():
        if isinstance(block.get(name), str):
            start[name] = ""
            deltas.append({"type": kind, name: block[name]})
    cited = start.pop("citations", None) or ()
    deltas += [{"type": "citations_delta", "citation": one} for one in cited]
    if block["type"].endswith("tool_use"):
        start["input"] = {}
        json = orjson.dumps(block["input"]).decode()
        deltas += [
            {"type": "input_json_delta", "partial_json": one} for one in (json[:3], json[3:])
        ]
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def heard(blocks: list[Block]) -> AssistantTurn:
    """The turn as a session would keep it: parts in the order they began."""
    state = anthropic_messages.start()
    parts: list[Any] = []
    texts: dict[str, str] = {}
    for frame in [one for at, block in enumerate(blocks) for one in frames(block, at)]:
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
                    parts.append(_called(event))
                case ToolResult():
                    parts.append(_settled(event))
                case _:
                    pass
    return AssistantTurn(tuple(parts))


def _called(event: ToolCall) -> ToolCallPart:
    return ToolCallPart(event.id, event.name, event.input, event.executed, event.metadata)


def _settled(event: ToolResult) -> ToolResultPart:
    """A session keeps a failed result as words, so only its metadata can tell it again."""
    if event.error:
        return ToolResultPart(event.id, "t", "error", {"error": "no"}, event.metadata)
    return ToolResultPart(event.id, "t", "json", event.value, event.metadata)


def told_again(blocks: list[Block]) -> list[Block]:
    request = ModelRequest("m", turns=(heard(blocks),), options={"cache": False})
    content: list[Block] = anthropic_messages.body(request)["messages"][0]["content"]
    return content


THOUGHT = {"type": "thinking", "thinking": "Hm …\n", "signature": "EqQBCkYIARgB/+=="}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3"}
SAID = {"type": "text", "text": "Yes: 22 °C."}
CITED = SAID | {"citations": [{"type": "char_location", "cited_text": "a", "document_index": 0}]}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"a": [1, {"b": None}]}}
BY_CODE = CALL | {"caller": {"type": "code_execution_20260120", "tool_id": "srv_1"}}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srv_1",
    "content": [{"type": "web_search_result", "encrypted_content": "Eqgf", "page_age": None}],
    "caller": {"type": "direct"},
}
REFUSED = FOUND | {"content": {"type": "web_search_tool_result_error", "error_code": "x"}}
MCP = {"type": "mcp_tool_use", "id": "srv_1", "name": "e", "server_name": "s", "input": {}}
ECHO = {
    "type": "mcp_tool_result",
    "tool_use_id": "srv_1",
    "is_error": True,
    "content": [{"type": "text", "text": "no"}],
}
UNKNOWN = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}
RESULT_OF_BEFORE = FOUND | {"tool_use_id": "srv_0"}


@pytest.mark.parametrize(
    "blocks",
    [
        [THOUGHT, SAID],
        [THOUGHT, REDACTED, THOUGHT, CALL],
        [REDACTED, SAID, CALL],
        [THOUGHT | {"thinking": ""}, CALL],
        [THOUGHT, SEARCH, FOUND, THOUGHT, CITED],
        [SEARCH, REFUSED, SAID],
        [MCP, ECHO, SAID, BY_CODE],
        [THOUGHT, UNKNOWN, THOUGHT, SAID],
        [RESULT_OF_BEFORE, SAID],
        [SAID, SEARCH],
    ],
    ids=lambda blocks: ",".join(block["type"] for block in blocks),
)
def test_an_answer_goes_back_block_by_block_as_it_came(blocks: list[Block]) -> None:
    """O-08, O-11, O-12: of the same model, everything it needs to recognise its own words."""
    assert told_again(blocks) == blocks


def test_a_paused_call_goes_back_without_the_result_that_it_never_had() -> None:
    """A session fails it for want of a result; the real one follows with the next answer."""
    call = heard([SEARCH]).content[0]
    assert isinstance(call, ToolCallPart)
    lost = ToolResultPart(call.call_id, call.name, "error", {"error": "none"}, call.metadata)

    request = ModelRequest("m", turns=(AssistantTurn((call, lost)), heard([RESULT_OF_BEFORE])))

    messages = anthropic_messages.body(request)["messages"]
    assert [message["content"] for message in messages] == [[SEARCH], [RESULT_OF_BEFORE]]


TEXTS = st.text(min_size=1).filter(str.strip)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
def test_thinking_and_signatures_of_any_text_come_back_as_they_were(
    thoughts: list[tuple[str, str]],
) -> None:
    blocks = [{"type": "thinking", "thinking": text, "signature": sig} for text, sig in thoughts]

    assert told_again(blocks) == blocks
