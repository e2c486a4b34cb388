"""What was built from a turn is kept as long as the turn, and later requests use it."""

import gc

from fairlead_llm.openai_chat.messages import build_messages
from fairlead_llm.turn_memo import TurnMemo
from fairlead_schema.provider.request import (
    AssistantTurn,
    MediaPart,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolResultPart,
    ToolTurn,
    UserTurn,
)

IMAGE = MediaPart("data:image/png;base64,aGk=", "image/png")


def test_a_turn_is_built_once_and_forgotten_with_its_history() -> None:
    memo, built = TurnMemo[AssistantTurn, str](), list[AssistantTurn]()

    def build(turn: AssistantTurn) -> str:
        built.append(turn)
        return f"built {len(built)}"

    turn, equal = AssistantTurn((TextPart("a"),)), AssistantTurn((TextPart("a"),))
    assert [memo.get(turn, build), memo.get(turn, build), memo.get(equal, build)] == [
        "built 1",
        "built 1",
        "built 2",
    ]
    built.clear()
    del turn, equal
    gc.collect()
    assert len(memo) == 0


def test_a_turn_has_other_messages_after_its_loop_than_in_it() -> None:
    """O-24: plain reasoning goes back only while the model still calls tools."""
    thought = AssistantTurn((ReasoningPart("hm", {"field": "reasoning_content"}), TextPart("hi")))
    opening = UserTurn((TextPart("go"),))
    request = ModelRequest(model="m", turns=(opening, thought))

    inside, again = build_messages(request), build_messages(request)
    later = build_messages(ModelRequest(model="m", turns=(opening, thought, opening)))

    assert inside == again
    assert inside[1]["reasoning_content"] == "hm"
    assert "reasoning_content" not in later[1]


def test_media_follows_a_kept_result_in_every_request() -> None:
    """O-23"""
    result = ToolTurn(ToolResultPart("c1", "read", "content", [IMAGE]))
    request = ModelRequest(model="m", turns=(UserTurn((TextPart("go"),)), result))

    assert build_messages(request) == build_messages(request)
    assert build_messages(request)[-1]["content"][0]["type"] == "image_url"
