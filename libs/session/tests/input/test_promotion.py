"""Promotion: which pending input becomes history at a boundary, and in which order."""

from libs.session.tests.conftest import (
    CREATED,
    admitted,
    dispatched,
    given,
    ms,
    promoted,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.events import InputCancelled, InputEdited, PromptAdmitted, ResumeRequested
from fairlead_schema.prompt import Prompt
from fairlead_session.input.promotion import PROMOTED_BYTES_MAX, eligible_inputs, promote
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session


def ids(inputs: tuple[PendingInput, ...]) -> list[str]:
    return [item.message_id for item in inputs]


def boundary(session: Session) -> list[str]:
    return ids(eligible_inputs(session))


def test_all_pending_steers_promote_in_admission_order() -> None:
    """B-06: every steer that the log holds at the boundary, by admitted sequence."""
    session = given(CREATED, admitted("msg_b"), admitted("msg_a"), admitted("msg_c"))

    assert boundary(session) == ["msg_b", "msg_a", "msg_c"]


def test_a_promotion_repeats_the_prompt_and_the_time_of_its_admission() -> None:
    """B-01, B-02: the visible message was created when it was admitted."""
    session = given(CREATED, admitted("msg_1", "hi"))

    events = promote(eligible_inputs(session))

    assert events == (promoted("msg_1", "hi", created=ms(2)),)


def test_steers_promote_before_queued_input() -> None:
    """B-12: with both kinds pending the first boundary takes steers only."""
    session = given(
        CREATED, admitted("msg_q", delivery="queue"), admitted("msg_1"), admitted("msg_2")
    )

    assert boundary(session) == ["msg_1", "msg_2"]


def test_steers_that_come_while_a_queued_input_opens_its_turn_follow_it() -> None:
    """B-14: in the same boundary, the queued input first; another one's turn is not its own."""
    alone = given(CREATED, admitted("msg_q", delivery="queue"))
    joined = then(alone, admitted("msg_1"), admitted("msg_2"))

    assert boundary(alone) == ["msg_q"]
    assert ids(eligible_inputs(joined, opening="msg_q")) == ["msg_q", "msg_1", "msg_2"]
    assert ids(eligible_inputs(joined, opening="msg_other")) == ["msg_1", "msg_2"]
    assert ids(eligible_inputs(then(joined, ResumeRequested()), opening="msg_q")) == [
        "msg_1",
        "msg_2",
    ]


def test_an_idle_session_promotes_its_oldest_queued_input_alone() -> None:
    """B-11, B-15: exactly one queued input opens an activity, first come first served."""
    session = given(
        CREATED, admitted("msg_1", delivery="queue"), admitted("msg_2", delivery="queue")
    )

    assert boundary(session) == ["msg_1"]
    assert boundary(then(session, promoted("msg_1"))) == []


def test_queued_input_waits_while_a_turn_is_owed() -> None:
    """B-11: a continuation comes before the next queued input."""
    session = given(CREATED, admitted("msg_1", delivery="queue"), ResumeRequested())

    assert boundary(session) == []


def test_queued_input_follows_once_nothing_continues() -> None:
    """B-11, B-13: steers that came meanwhile are first, then the next queued input."""
    session = given(
        CREATED,
        admitted("msg_1", delivery="queue"),
        admitted("msg_2", delivery="queue"),
        promoted("msg_1"),
        dispatched(),
        step_started(),
        admitted("msg_s"),
        step_ended(),
    )

    assert boundary(session) == ["msg_s"]
    after = then(
        session, promoted("msg_s"), dispatched("msg_b"), step_started("msg_b"), step_ended("msg_b")
    )
    assert boundary(after) == ["msg_2"]


def test_a_boundary_takes_a_bounded_number_of_steers() -> None:
    """P-05, B-06: more than the limit wait, in order, for the following boundary."""
    session = given(CREATED, admitted("msg_1"), admitted("msg_2"), admitted("msg_3"))

    assert ids(eligible_inputs(session, steers_max=2)) == ["msg_1", "msg_2"]
    rest = then(session, promoted("msg_1"), promoted("msg_2"))
    assert ids(eligible_inputs(rest, steers_max=2)) == ["msg_3"]


def test_a_boundary_takes_no_more_than_one_commit_holds() -> None:
    """P-05, B-06: large steers are split over boundaries, and even the largest gets its turn."""
    large = "x" * (PROMOTED_BYTES_MAX // 2 - 1000)
    session = given(CREATED, *(admitted(f"msg_{n}", large) for n in range(3)))
    huge = given(CREATED, admitted("msg_h", "x" * (PROMOTED_BYTES_MAX + 1)), admitted("msg_1"))

    assert boundary(session) == ["msg_0", "msg_1"]
    assert boundary(huge) == ["msg_h"]


def test_cancelled_input_is_never_promoted() -> None:
    """B-06: what was cancelled while pending is gone from the inbox."""
    session = given(
        CREATED, admitted("msg_1"), admitted("msg_2"), InputCancelled(message_id="msg_1")
    )

    assert boundary(session) == ["msg_2"]


def test_edited_input_keeps_its_place_and_promotes_its_new_words() -> None:
    """B-03: the promotion matches the input as it is stored now."""
    edited = InputEdited(message_id="msg_1", prompt=Prompt(text="new"), delivery="steer")
    session = given(CREATED, admitted("msg_1", "old"), admitted("msg_2"), edited)

    events = promote(eligible_inputs(session))

    assert [event.prompt.text for event in events] == ["new", "hello"]


def test_promotion_empties_the_inbox_and_owes_a_turn() -> None:
    """B-01, B-21: promoted input is visible at once and starts the step count again."""
    session = given(CREATED, admitted("msg_1"), dispatched(step=4), promoted("msg_1"))

    assert session.inbox.pending == ()
    assert (session.execution.owed, session.turn.step) == (True, 0)
    assert session.inbox.admissions["msg_1"].promoted_seq == 4
    assert session.transcript.find("msg_1") is not None


def test_admitted_input_is_not_yet_visible() -> None:
    """A-11: a pending input is no message."""
    session = given(
        CREATED, PromptAdmitted(message_id="msg_1", prompt=Prompt(text="hi"), delivery="steer")
    )

    assert session.transcript.find("msg_1") is None
    assert not session.transcript.lines
