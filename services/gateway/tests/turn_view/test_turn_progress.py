"""How far a turn is, and how much of a text a reader has."""

import pytest

from fairlead_gateway.turn_view.text_progress import TextProgress
from fairlead_gateway.turn_view.turn_progress import TurnProgress, seq_of, type_of
from fairlead_testing.protocol_samples import envelopes, read_turn, released

KEY = ("msg_1", "text")


def test_fragments_that_begin_anew_are_not_said_twice() -> None:
    progress = TextProgress()

    said = [
        progress.take(KEY, "one ", 0),
        progress.take(KEY, "two ", 1),
        progress.take(KEY, "one two three ", 0),
        progress.take(KEY, "four", 3),
        progress.end(KEY, "one two three four five"),
    ]

    assert said == ["one ", "two ", "three ", "four", " five"]


def test_a_text_that_a_crash_shortened_has_no_rest() -> None:
    progress = TextProgress()
    progress.take(KEY, "one two", 0)

    assert progress.end(KEY, "") is None


@pytest.mark.parametrize(
    ("reason", "is_over"),
    [
        ("idle", True),
        ("failed", True),
        ("interrupted", True),
        ("declined", True),
        ("over-budget", True),
        ("parked", False),
        ("handover", False),
        ("retry-later", False),
    ],
)
def test_a_turn_is_over_when_nothing_goes_on_by_itself(reason: str, *, is_over: bool) -> None:
    progress = TurnProgress("msg_1")
    progress.take(released(reason))

    assert progress.is_over is is_over


def test_a_turn_is_answered_by_its_own_prompt_alone() -> None:
    turn = envelopes(read_turn("text"))
    own = next(event["data"]["messageID"] for event in turn if type_of(event) == "prompted")
    progress, other = TurnProgress(own), TurnProgress("msg_other")

    for event in turn:
        if seq_of(event) is not None:
            progress.take(event)
            other.take(event)

    assert (progress.is_over, progress.finish) == (True, "stop")
    assert progress.texts == ["hello there friend"]
    assert not other.is_over


def test_a_withdrawn_prompt_is_over() -> None:
    progress = TurnProgress("msg_1")
    progress.take(
        {"type": "input.cancelled", "data": {"messageID": "msg_1"}, "durable": {"seq": 2}}
    )

    assert progress.is_withdrawn
    assert progress.is_over
