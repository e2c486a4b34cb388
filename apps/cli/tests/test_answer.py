"""The answer to one prompt, folded from its events."""

from typing import Any

from fairlead_cli.answer import AnswerFailed, AnswerFinished, AnswerFold, AnswerPiece
from fairlead_schema.public_events import EventEnvelope

MINE = "msg_mine"
TEXT = {"assistantMessageID": "msg_a", "textID": "t1"}
END = {"assistantMessageID": "msg_a", "finish": "stop", "cost": 0.5, "tokens": {"input": 1}}


def event(type_: str, **data: Any) -> EventEnvelope:  # noqa: ANN401
    return EventEnvelope(id="evt_x", type=f"session.next.{type_}", data=data)


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


def test_after_a_reconnect_nothing_is_shown_twice() -> None:
    answer = promoted_answer()
    answer.take(event("text.delta", **TEXT, delta="Hello, "))

    answer.restart()
    so_far = text(answer.take(event("text.delta", **TEXT, delta="Hello, wor")))
    remaining = text(answer.take(event("text.ended", **TEXT, text="Hello, world")))

    assert so_far + remaining == "world"


def test_what_was_said_before_our_prompt_is_not_its_answer() -> None:
    answer = AnswerFold(MINE)

    before = answer.take(event("text.ended", **TEXT, text="old"))
    answer.take(event("step.ended", **END))

    assert before == []
    assert answer.outcome is None


def test_a_step_that_ends_finishes_the_answer() -> None:
    answer = promoted_answer()
    answer.take(event("text.ended", **TEXT, text="Hello"))
    answer.take(event("step.ended", **END))

    assert answer.outcome == AnswerFinished("Hello", "stop", 0.5, {"input": 1})


def test_a_step_that_calls_tools_goes_on() -> None:
    answer = promoted_answer()
    answer.take(event("step.ended", **{**END, "finish": "tool-calls"}))

    assert answer.outcome is None


def test_a_step_after_a_failed_one_replaces_its_outcome() -> None:
    answer = promoted_answer()
    answer.take(event("step.failed", assistantMessageID="msg_a", error={"message": "cut"}))
    first_outcome = answer.outcome
    answer.take(event("step.started", assistantMessageID="msg_b"))

    assert first_outcome == AnswerFailed("cut")
    assert answer.outcome is None


def test_tools_are_remarked_on() -> None:
    pieces = promoted_answer().take(event("tool.called", tool="bash", input={"command": "ls"}))

    assert pieces == [AnswerPiece("note", "bash {'command': 'ls'}")]
