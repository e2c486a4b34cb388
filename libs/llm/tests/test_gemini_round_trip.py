"""Parts of Gemini go back unchanged, each signature on its own part."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_llm import gemini
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

Part = dict[str, Any]


def assistant_turn(parts: list[Part]) -> AssistantTurn:
    """The turn as a session stores it: parts in the order of their start."""
    state = gemini.start()
    turn_parts: list[Any] = []
    texts: dict[str, str] = {}
    chunks: list[Part] = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
    for chunk in [*chunks, {"candidates": [{"finishReason": "STOP"}]}]:
        state, events = gemini.step(state, Frame(orjson.dumps(chunk | {"responseId": "r1"})))
        for event in events:
            match event:
                case TextStart(id=id_) | ReasoningStart(id=id_):
                    texts[id_] = ""
                case TextChunk(id=id_, text=text) | ReasoningChunk(id=id_, text=text):
                    texts[id_] += text
                case TextEnd(id=id_):
                    turn_parts.append(TextPart(texts[id_]))
                case ReasoningEnd(id=id_, metadata=metadata):
                    turn_parts.append(ReasoningPart(texts[id_], metadata))
                case ToolCall(id=id_, name=name, input=input_, metadata=metadata):
                    turn_parts.append(ToolCallPart(id_, name, input_, event.executed, metadata))
                case ToolResult():
                    turn_parts.append(_result_part(event))
                case _:
                    pass
    return AssistantTurn(tuple(turn_parts))


def _result_part(event: ToolResult) -> ToolResultPart:
    """A session stores a failed result as text, so only the metadata has the original."""
    if event.error:
        return ToolResultPart(event.id, "t", "error", {"error": "no"}, event.metadata)
    return ToolResultPart(event.id, "t", "json", event.value, event.metadata)


def round_trip(parts: list[Part], model: str = "gemini-3-pro") -> list[Part]:
    request = ModelRequest(model, turns=(assistant_turn(parts),))
    content: list[Part] = gemini.body(request)["contents"][0]["parts"]
    return content


def with_signature(part: Part, signature: str = "CiQBDDnW+/w=") -> Part:
    return part | {"thoughtSignature": signature}


TEXT = {"text": "Yes: 22 °C."}
REASONING = {"text": "Hm …", "thought": True}
CALL = {"functionCall": {"id": "c1", "name": "look", "args": {"a": [1, {"b": None}]}}}
OTHER = {"functionCall": {"id": "c2", "name": "look", "args": {}}}
CODE = {"executableCode": {"language": "PYTHON", "code": "1/0"}}
CODE_RESULT = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
CODE_ERROR = {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}}
SEARCH = {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH", "args": {"q": "x"}}}
SEARCH_RESULT = {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH", "response": {"r": [1]}}}


@pytest.mark.parametrize(
    "parts",
    [
        [with_signature(TEXT)],
        [REASONING, TEXT, with_signature({"text": ""})],
        [TEXT, with_signature({"text": "b"}), {"text": "c"}],
        [
            with_signature(REASONING),
            with_signature(REASONING, "other"),
            with_signature(TEXT, "third"),
        ],
        [REASONING, with_signature(CALL), OTHER],
        [with_signature(CALL), with_signature(OTHER, "other")],
        [with_signature(CODE), CODE_RESULT, TEXT],
        [CODE, with_signature(CODE_ERROR), with_signature({"text": ""})],
        [with_signature(SEARCH), with_signature(SEARCH_RESULT, "other"), TEXT],
        [with_signature({"inlineData": {"mimeType": "image/png", "data": "aGk="}}), TEXT],
    ],
    ids=lambda parts: ",".join(next(iter(part)) for part in parts),
)
def test_an_answer_goes_back_part_by_part_as_it_came(parts: list[Part]) -> None:
    """O-08, O-11, O-12: the same model gets its own blocks back unchanged."""
    assert round_trip(parts) == parts


def test_pieces_of_one_text_without_signatures_become_one_part() -> None:
    assert round_trip([{"text": "a"}, {"text": "b"}, REASONING]) == [{"text": "ab"}, REASONING]


def test_a_minted_id_goes_back_with_its_call() -> None:
    part = {"functionCall": {"name": "look", "args": {}}}

    assert round_trip([part], "gemini-2.5-flash") == [
        {"functionCall": {"id": "r1-0", "name": "look", "args": {}}}
    ]


SIGNED_PARTS = st.builds(
    lambda text, signature, thought: with_signature(
        {"text": text} | ({"thought": True} if thought else {}), signature
    ),
    st.text(),
    st.text(min_size=1),
    st.booleans(),
)


@given(st.lists(SIGNED_PARTS, min_size=1, max_size=5))
def test_signatures_on_any_texts_come_back_where_they_were(parts: list[Part]) -> None:
    assert round_trip(parts) == parts
