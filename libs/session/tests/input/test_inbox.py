"""The inbox before promotion: listed in order, withdrawn, changed, and then no more."""

import pytest
from libs.session.tests.conftest import CREATED, admitted, claimed, given, ms, promoted, then

from fairlead_schema.events import InputCancelled, InputEdited, RevertCommitted
from fairlead_schema.prompt import Prompt
from fairlead_session.input.inbox import (
    AlreadyPromoted,
    InputNotPending,
    cancel,
    edit,
    pending_receipts,
)
from fairlead_session.input.promotion import eligible_inputs, promote
from fairlead_session.state.session import Session

BETTER = Prompt(text="better")


def test_pending_inputs_are_listed_in_the_order_of_admission() -> None:
    """A-31, P-29: receipts, as admission gave them, of what is not promoted."""
    session = given(
        CREATED,
        admitted("msg_1", "one"),
        admitted("msg_2", "two", "queue"),
        admitted("msg_3", "three"),
        promoted("msg_1", "one"),
    )

    listed = pending_receipts(session)

    assert [(item.id, item.delivery, item.prompt.text) for item in listed] == [
        ("msg_2", "queue", "two"),
        ("msg_3", "steer", "three"),
    ]
    assert (listed[0].admitted_seq, listed[0].time_created) == (3, ms(3))
    assert all(item.promoted_seq is None and item.session_id == "ses_1" for item in listed)


def test_a_pending_input_is_withdrawn() -> None:
    """P-29: it leaves the inbox and is never promoted."""
    session = given(CREATED, admitted("msg_1"), admitted("msg_2"))

    outcome = cancel(session, "msg_1")

    assert outcome == (InputCancelled(message_id="msg_1"),)
    after = then(session, *outcome)
    assert [receipt.id for receipt in pending_receipts(after)] == ["msg_2"]
    assert [item.message_id for item in eligible_inputs(after)] == ["msg_2"]


PROMOTED = given(CREATED, admitted("msg_1"), promoted("msg_1"))
WITHDRAWN = given(CREATED, admitted("msg_1"), InputCancelled(message_id="msg_1"))
REVERTED = given(
    CREATED,
    admitted("msg_0"),
    promoted("msg_0"),
    admitted("msg_1"),
    RevertCommitted(message_id="msg_0"),
)


@pytest.mark.parametrize(
    ("session", "outcome"),
    [
        (PROMOTED, AlreadyPromoted("msg_1", 3)),
        (given(CREATED), InputNotPending("msg_1")),
        (WITHDRAWN, InputNotPending("msg_1")),
        (REVERTED, InputNotPending("msg_1")),
    ],
    ids=["promoted", "unknown", "withdrawn", "reverted"],
)
def test_what_is_not_pending_is_neither_withdrawn_nor_changed(
    session: Session, outcome: AlreadyPromoted | InputNotPending
) -> None:
    """B-03: history does not change, and what is gone stays gone."""
    assert cancel(session, "msg_1") == outcome
    assert edit(session, "msg_1", prompt=BETTER, delivery=None) == outcome


def test_an_edit_changes_words_and_keeps_the_place() -> None:
    """B-03: what is promoted later is the input as it was edited, at its old place and time."""
    session = given(CREATED, admitted("msg_1"), admitted("msg_2"))

    outcome = edit(session, "msg_1", prompt=BETTER, delivery=None)

    assert outcome == (InputEdited(message_id="msg_1", prompt=BETTER, delivery="steer"),)
    events = promote(eligible_inputs(then(session, *outcome)))
    assert [(event.message_id, event.prompt.text, event.created) for event in events] == [
        ("msg_1", "better", ms(2)),
        ("msg_2", "hello", ms(3)),
    ]


def test_a_queued_input_becomes_a_steer() -> None:
    """B-12, P-29: it then joins the turn that runs instead of waiting for it to be over."""
    session = given(CREATED, admitted("msg_1", delivery="queue"), promoted("msg_0"), claimed())
    assert eligible_inputs(session) == ()

    outcome = edit(session, "msg_1", prompt=None, delivery="steer")

    assert outcome == (
        InputEdited(message_id="msg_1", prompt=Prompt(text="hello"), delivery="steer"),
    )
    after = then(session, *outcome)
    assert [item.message_id for item in eligible_inputs(after)] == ["msg_1"]


def test_an_edit_that_changes_nothing_writes_nothing() -> None:
    """P-29: a repeated edit is no second event."""
    session = given(CREATED, admitted("msg_1"))

    assert edit(session, "msg_1", prompt=Prompt(text="hello"), delivery="steer") == ()
