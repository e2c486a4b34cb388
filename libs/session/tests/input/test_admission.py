"""Admission: one prompt, once; an exact retry gets its receipt, a reused id a conflict."""

import pytest
from libs.session.tests.conftest import (
    CREATED,
    admitted,
    dispatched,
    given,
    ms,
    promoted,
    step_ended,
    step_started,
)

from fairlead_schema.events import (
    InputCancelled,
    InputEdited,
    InterruptRequested,
    PromptAdmitted,
    PromptPromoted,
    ResumeRequested,
    RevertCommitted,
    SyntheticAdded,
)
from fairlead_schema.prompt import (
    AgentMention,
    Delivery,
    Prompt,
    PromptFile,
    Receipt,
    TextSpan,
)
from fairlead_session.input.admission import (
    InboxFull,
    MessageIdInUse,
    TurnNotRunning,
    admit,
    receipt,
)
from fairlead_session.input.fingerprint import fingerprint

HELLO = Prompt(text="hello")


def test_a_new_id_is_admitted_with_its_delivery() -> None:
    """A-11: an unknown id gives the one event that admits it."""
    outcome = admit(given(CREATED), "msg_1", HELLO, "queue")

    assert outcome == (PromptAdmitted(message_id="msg_1", prompt=HELLO, delivery="queue"),)


def test_admission_without_resume_says_so_in_the_log() -> None:
    """A-22: an input that nobody is asked to run carries `resume: false`."""
    outcome = admit(given(CREATED), "msg_1", HELLO, "steer", resume=False)

    assert outcome == (
        PromptAdmitted(message_id="msg_1", prompt=HELLO, delivery="steer", resume=False),
    )


def test_an_exact_retry_gets_the_identical_receipt() -> None:
    """A-14, A-27: the receipt is the stored one, with the sequence and time of the admission."""
    session = given(CREATED, admitted("msg_1"))

    outcome = admit(session, "msg_1", HELLO, "steer")

    assert outcome == ()
    assert receipt(session, "msg_1", HELLO) == Receipt(
        admitted_seq=2,
        id="msg_1",
        session_id="ses_1",
        prompt=HELLO,
        delivery="steer",
        time_created=ms(2),
    )


def test_the_receipt_shows_the_promotion_only_after_it() -> None:
    """A-27: `promotedSeq` appears once the input is visible, and nothing else changes."""
    session = given(CREATED, admitted("msg_1"), promoted("msg_1", created=ms(2)))

    outcome = admit(session, "msg_1", HELLO, "steer")

    stored = receipt(session, "msg_1", HELLO)
    assert (outcome, stored.admitted_seq, stored.promoted_seq) == ((), 2, 3)
    assert stored.time_created == ms(2)


def test_a_retry_with_other_words_is_a_conflict() -> None:
    """A-16: the same id with another prompt conflicts."""
    outcome = admit(given(CREATED, admitted("msg_1")), "msg_1", Prompt(text="bye"), "steer")

    assert outcome == MessageIdInUse("msg_1")


def test_a_retry_with_another_delivery_is_a_conflict() -> None:
    """A-17: the same id with another delivery conflicts."""
    outcome = admit(given(CREATED, admitted("msg_1")), "msg_1", HELLO, "queue")

    assert outcome == MessageIdInUse("msg_1")


def test_a_retry_compares_the_resolved_attachments() -> None:
    """A-25: equality is of the resolved prompt, media types included; time is not compared."""
    photo = PromptFile(uri="a", mime="image/png")
    first = Prompt(text="look", files=(photo,))
    session = given(
        CREATED, PromptAdmitted(message_id="msg_1", prompt=first, delivery="steer", resume=False)
    )

    again = admit(session, "msg_1", first.model_copy(), "steer", resume=False)
    other = admit(
        session,
        "msg_1",
        Prompt(text="look", files=(photo.model_copy(update={"mime": "image/gif"}),)),
        "steer",
    )

    assert again == ()
    assert other == MessageIdInUse("msg_1")


def test_the_id_of_a_visible_message_is_no_prompt_id() -> None:
    """A-19: an id that any message of the session bears cannot be admitted."""
    session = given(
        CREATED,
        SyntheticAdded(message_id="msg_s", text="note"),
        dispatched("msg_a"),
        step_started("msg_a"),
        step_ended("msg_a"),
    )

    assert admit(session, "msg_s", HELLO, "steer") == MessageIdInUse("msg_s")
    assert admit(session, "msg_a", HELLO, "steer") == MessageIdInUse("msg_a")


@pytest.mark.parametrize("delivery", ["steer", "queue"])
def test_a_full_inbox_refuses_new_input_but_not_a_retry(delivery: Delivery) -> None:
    """A-30, A-14: beyond the gap the inbox has a limit, and retries do not count against it."""
    session = given(CREATED, admitted("msg_1"), admitted("msg_2"))

    assert admit(session, "msg_3", HELLO, delivery, pending_max=2) == InboxFull(2)
    assert admit(session, "msg_1", HELLO, "steer", pending_max=2) == ()
    assert admit(session, "msg_3", HELLO, delivery, pending_max=3) == (
        PromptAdmitted(message_id="msg_3", prompt=HELLO, delivery=delivery),
    )


def test_promoted_input_no_longer_fills_the_inbox() -> None:
    """A-30: only what is pending counts."""
    session = given(CREATED, admitted("msg_1"), promoted("msg_1"))

    assert admit(session, "msg_2", HELLO, "steer", pending_max=1) == (admitted("msg_2"),)


@pytest.mark.parametrize(
    "event",
    [
        InputCancelled(message_id="msg_1"),
        InputEdited(message_id="msg_1", prompt=Prompt(text="better"), delivery="steer"),
    ],
    ids=["cancelled", "edited"],
)
def test_a_retry_of_what_was_cancelled_or_edited_is_a_conflict(
    event: InputCancelled | InputEdited,
) -> None:
    """A-16: the stored input is not what the retry says any more."""
    session = given(CREATED, admitted("msg_1"), event)

    assert admit(session, "msg_1", HELLO, "steer") == MessageIdInUse("msg_1")


def test_a_retry_of_the_edited_words_gets_the_receipt() -> None:
    """A-14: after an edit the edited prompt is the stored one."""
    edited = InputEdited(message_id="msg_1", prompt=Prompt(text="better"), delivery="queue")
    session = given(CREATED, admitted("msg_1"), edited)

    outcome = admit(session, "msg_1", Prompt(text="better"), "queue")

    assert outcome == ()
    assert receipt(session, "msg_1", Prompt(text="better")).admitted_seq == 2


def test_a_reverted_id_is_never_admissible_again() -> None:
    """A-29: a committed revert removes the message and the pending input, never their ids."""
    session = given(
        CREATED,
        admitted("msg_1"),
        promoted("msg_1"),
        admitted("msg_2"),
        promoted("msg_2"),
        SyntheticAdded(message_id="msg_s", text="note"),
        admitted("msg_3"),
        RevertCommitted(message_id="msg_1"),
    )

    assert [item.message_id for item in session.inbox.pending] == []
    assert session.transcript.find("msg_2") is None
    for id_ in ("msg_2", "msg_3", "msg_s"):
        assert admit(session, id_, Prompt(text="other"), "steer") == MessageIdInUse(id_)
        assert admit(session, id_, HELLO, "steer", resume=False) in ((), MessageIdInUse(id_))


@pytest.mark.parametrize("delivery", ["steer", "queue"])
def test_a_bare_promotion_counts_as_its_own_admission(delivery: Delivery) -> None:
    """A-20: a retry of it gets a receipt with `promotedSeq`, whatever its delivery."""
    session = given(CREATED, PromptPromoted(message_id="msg_1", prompt=HELLO, created=7))

    outcome = admit(session, "msg_1", HELLO, delivery)

    stored = receipt(session, "msg_1", HELLO)
    assert (outcome, stored.admitted_seq, stored.promoted_seq) == ((), 2, 2)
    other = admit(session, "msg_1", Prompt(text="other"), delivery)
    assert other == MessageIdInUse("msg_1")


def test_a_steer_may_expect_the_turn_that_runs() -> None:
    """P-05: admitted while that assistant message is being answered, and only then."""
    session = given(CREATED, admitted("msg_1"), promoted("msg_1"), dispatched("msg_a"))

    assert admit(session, "msg_2", HELLO, "steer", expected_turn="msg_a") == (admitted("msg_2"),)
    assert admit(session, "msg_2", HELLO, "steer", expected_turn="msg_b") == TurnNotRunning(
        "msg_b", "msg_a"
    )


def test_a_steer_that_comes_too_late_is_not_admitted() -> None:
    """P-05: the turn it expected is over, so nothing runs."""
    session = given(
        CREATED,
        admitted("msg_1"),
        promoted("msg_1"),
        dispatched("msg_a"),
        step_started("msg_a"),
        step_ended("msg_a"),
    )

    assert admit(session, "msg_2", HELLO, "steer", expected_turn="msg_a") == TurnNotRunning(
        "msg_a", None
    )


def test_an_exact_retry_gets_its_receipt_after_its_turn_too() -> None:
    """A-14: it was admitted in time."""
    session = given(CREATED, admitted("msg_1"))

    outcome = admit(session, "msg_1", HELLO, "steer", expected_turn="msg_a")

    assert outcome == ()


def test_a_retry_asks_again_for_input_that_nobody_works_on() -> None:
    """A-21, A-23: after an interrupt a wake alone starts nothing, so the retry asks for work."""
    session = given(CREATED, admitted("msg_1"), InterruptRequested())

    assert admit(session, "msg_1", HELLO, "steer") == (ResumeRequested(forced=False),)
    assert admit(session, "msg_1", HELLO, "steer", resume=False) == ()


def test_a_fingerprint_stays_the_same_over_releases() -> None:
    """A snapshot holds fingerprints. A retry may reach a release that only reads them."""
    mention = TextSpan(start=0, end=5, text="Größe")
    prompt = Prompt(
        text="Größe?\u2028",
        files=(PromptFile(uri="file:///a.txt", mime="text/plain", source=mention),),
        agents=(AgentMention(name="plan"),),
    )

    assert fingerprint(prompt) == "e0bde78a7c0ebdd37d9db474dd0e95f2"
