"""What Gemini said goes back to it part by part, every signature on the part that bore it."""

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


def heard(parts: list[Part]) -> AssistantTurn:
    """The turn as a session would keep it: parts in the order they began."""
    state = gemini.start()
    kept: list[Any] = []
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
                    kept.append(TextPart(texts[id_]))
                case ReasoningEnd(id=id_, metadata=metadata):
                    kept.append(ReasoningPart(texts[id_], metadata))
                case ToolCall(id=id_, name=name, input=given_, metadata=metadata):
                    kept.append(ToolCallPart(id_, name, given_, event.executed, metadata))
                case ToolResult():
                    kept.append(_settled(event))
                case _:
                    pass
    return AssistantTurn(tuple(kept))


def _settled(event: ToolResult) -> ToolResultPart:
    """A session keeps a failed result as words, so only its metadata can tell it again."""
    if event.error:
        return ToolResultPart(event.id, "t", "error", {"error": "no"}, event.metadata)
    return ToolResultPart(event.id, "t", "json", event.value, event.metadata)


def told_again(parts: list[Part], model: str = "gemini-3-pro") -> list[Part]:
    request = ModelRequest(model, turns=(heard(parts),))
    content: list[Part] = gemini.body(request)["contents"][0]["parts"]
    return content


def signed(part: Part, signature: str = "CiQBDDnW+/w=") -> Part:
    return part | {"thoughtSignature": signature}


SAID = {"text": "Yes: 22 °C."}
THOUGHT = {"text": "Hm …", "thought": True}
CALL = {"functionCall": {"id": "c1", "name": "look", "args": {"a": [1, {"b": None}]}}}
OTHER = {"functionCall": {"id": "c2", "name": "look", "args": {}}}
CODE = {"executableCode": {"language": "PYTHON", "code": "1/0"}}
RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
BROKE = {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}}
SEARCH = {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH", "args": {"q": "x"}}}
FOUND = {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH", "response": {"r": [1]}}}


@pytest.mark.parametrize(
    "parts",
    [
        [signed(SAID)],
        [THOUGHT, SAID, signed({"text": ""})],
        [SAID, signed({"text": "b"}), {"text": "c"}],
        [signed(THOUGHT), signed(THOUGHT, "other"), signed(SAID, "third")],
        [THOUGHT, signed(CALL), OTHER],
        [signed(CALL), signed(OTHER, "other")],
        [signed(CODE), RAN, SAID],
        [CODE, signed(BROKE), signed({"text": ""})],
        [signed(SEARCH), signed(FOUND, "other"), SAID],
        [signed({"inlineData": {"mimeType": "image/png", "data": "aGk="}}), SAID],
    ],
    ids=lambda parts: ",".join(next(iter(part)) for part in parts),
)
def test_an_answer_goes_back_part_by_part_as_it_came(parts: list[Part]) -> None:
    """O-08, O-11, O-12: of the same model, everything it needs to recognise its own words."""
    assert told_again(parts) == parts


def test_pieces_of_one_text_without_signatures_become_one_part() -> None:
    assert told_again([{"text": "a"}, {"text": "b"}, THOUGHT]) == [{"text": "ab"}, THOUGHT]


def test_a_minted_id_goes_back_with_its_call() -> None:
    part = {"functionCall": {"name": "look", "args": {}}}

    assert told_again([part], "gemini-2.5-flash") == [
        {"functionCall": {"id": "r1-0", "name": "look", "args": {}}}
    ]


SIGNED = st.builds(
    lambda text, signature, thought: signed(
        {"text": text} | ({"thought": True} if thought else {}), signature
    ),
    st.text(),
    st.text(min_size=1),
    st.booleans(),
)


@given(st.lists(SIGNED, min_size=1, max_size=5))
def test_signatures_on_any_texts_come_back_where_they_were(parts: list[Part]) -> None:
    assert told_again(parts) == parts
