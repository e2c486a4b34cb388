"""The answer to one prompt, folded from its events."""

from typing import Any

from fairlead_cli.prompts.answer import AnswerFold, AnswerPiece
from fairlead_client.received_event import ReceivedEvent

MINE = "msg_mine"
TEXT = {"assistantMessageID": "msg_a", "textID": "t1"}


def event(type_: str, **data: Any) -> ReceivedEvent:  # noqa: ANN401
    return ReceivedEvent(type_, data, "evt_x")


def promoted_answer() -> AnswerFold:
    answer = AnswerFold(MINE)
    answer.take(event("prompted", messageID=MINE))
    return answer


def text(pieces: list[AnswerPiece]) -> str:
    return "".join(piece.text for piece in pieces if piece.kind == "text")


def test_deltas_are_shown_as_they_come_and_the_end_adds_nothing() -> None:
    answer = promoted_answer()

    texts = [text(answer.take(event("text.delta", **TEXT, delta=part))) for part in ("He", "llo")]
    end_text = text(answer.take(event("text.ended", **TEXT, text="Hello")))

    assert texts == ["He", "llo"]
    assert end_text == ""


def test_without_deltas_the_end_shows_the_whole() -> None:
    assert text(promoted_answer().take(event("text.ended", **TEXT, text="Hello"))) == "Hello"


def test_a_text_whose_last_fragments_were_lost_is_completed_by_its_end() -> None:
    answer = promoted_answer()
    so_far = text(answer.take(event("text.delta", **TEXT, delta="Hello, ")))
    remaining = text(answer.take(event("text.ended", **TEXT, text="Hello, world")))

    assert so_far + remaining == "Hello, world"


def test_after_a_lost_fragment_the_whole_text_is_shown_again() -> None:
    answer = promoted_answer()
    answer.take(event("text.delta", **TEXT, delta="Hello, "))
    answer.take(event("text.delta", **TEXT, delta="ld"))

    end = answer.take(event("text.ended", **TEXT, text="Hello, world"))

    assert [piece.text for piece in end] == ["", "Hello, world", ""]


def test_what_was_said_before_our_prompt_is_not_its_answer() -> None:
    assert AnswerFold(MINE).take(event("text.ended", **TEXT, text="old")) == []


def test_an_answer_that_does_not_fit_its_schema_is_remarked_on() -> None:
    rejected = {"status": "rejected", "error": "no name"}

    pieces = promoted_answer().take(event("step.ended", output=rejected))

    assert pieces == [AnswerPiece("note", "answer does not fit: no name")]


def test_tools_are_remarked_on() -> None:
    pieces = promoted_answer().take(event("tool.called", tool="bash", input={"command": "ls"}))

    assert pieces == [AnswerPiece("note", "bash {'command': 'ls'}")]
