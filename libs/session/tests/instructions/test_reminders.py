"""Reminders: durable, at their place, and never inside what a provider has cached."""

import pytest
from libs.session.tests.compaction.test_pruning import called
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    admitted,
    claimed,
    dispatched,
    given,
    observed,
    promoted,
    sample,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.context import ContextSample
from fairlead_schema.events import (
    ContextSnapshotAdvanced,
    ContextUpdated,
    PromptPromoted,
    ResumeRequested,
    SessionEvent,
)
from fairlead_schema.message import SystemMessage
from fairlead_session.input.promotion import eligible_inputs
from fairlead_session.instructions.reminders import STEERED
from fairlead_session.state.session import Session
from fairlead_session.turn.boundary import TurnIds, prepare_turn
from fairlead_session.turn.prefix import broken_part, fingerprint, prefix
from fairlead_session.turn.request import ModelIdentity, build
from fairlead_session.turn.stream_calls import Offer

IDS = TurnIds("att_2", "msg_b", "msg_s")
IDENTITY = ModelIdentity(MODEL, "fast-1")
SAME = sample(observed("core/date", "monday"))
BEGUN: tuple[SessionEvent, ...] = (
    CREATED,
    INITIALISED,
    admitted("msg_1"),
    claimed(),
    promoted("msg_1"),
)


def cross(session: Session, seen: ContextSample = SAME) -> tuple[SessionEvent, ...]:
    return prepare_turn(session, eligible_inputs(session), seen, IDS)


def test_a_steer_between_two_steps_is_followed_by_a_reminder() -> None:
    """P-19: in the commit that promotes it, as a system message of the history."""
    session = given(*BEGUN, *called(1, "found"), admitted("msg_2", "faster"))

    events = cross(session)

    assert [type(event) for event in events] == [PromptPromoted, ContextUpdated]
    *_, last = then(session, *events).transcript.lines
    assert isinstance(last.message, SystemMessage)
    assert last.message.text == STEERED


def test_a_reminder_and_a_change_of_the_context_are_one_message() -> None:
    """P-19, F-29: the snapshot advances with it."""
    session = given(*BEGUN, *called(1, "found"), admitted("msg_2", "faster"))

    promotion, update, advanced = cross(session, sample(observed("core/date", "tuesday")))

    assert isinstance(promotion, PromptPromoted)
    assert isinstance(update, ContextUpdated)
    assert update.text == f"{STEERED}\n\ncore/date became tuesday"
    assert isinstance(advanced, ContextSnapshotAdvanced)


ANSWERED = (dispatched("msg_a"), step_started("msg_a"), step_ended("msg_a"))


@pytest.mark.parametrize(
    "events",
    [
        (*BEGUN, *called(1, "found")),
        (*BEGUN, *ANSWERED, admitted("msg_2")),
        (*BEGUN, *ANSWERED, ResumeRequested(), admitted("msg_2")),
        (*BEGUN, *called(1, "found", hosted=True), ResumeRequested(), admitted("msg_2")),
        (CREATED, INITIALISED, admitted("msg_1")),
    ],
    ids=["no-input", "after-an-answer", "resumed", "hosted-call", "first-prompt"],
)
def test_nobody_is_reminded_of_work_that_is_not_under_way(events: tuple[SessionEvent, ...]) -> None:
    """P-19: a prompt to a model that has answered is an ordinary prompt."""
    assert not any(isinstance(event, ContextUpdated) for event in cross(given(*events)))


def test_no_reminder_breaks_the_prefix() -> None:
    """P-19, E-23: later requests repeat a reminder in its place; that of a final step is in no prefix."""
    session = given(*BEGUN, *called(1, "found"))
    sent = [fingerprint(build(session, IDENTITY))]
    session = then(session, admitted("msg_2", "faster"))
    session = then(session, *cross(session))
    sent.append(fingerprint(build(session, IDENTITY)))
    session = then(session, *called(2, "found more"))
    last = prefix(build(session, IDENTITY, Offer(final=True)))

    assert broken_part(sent[0], prefix(build(session, IDENTITY)), epoch_changed=False) is None
    assert broken_part(sent[1], prefix(build(session, IDENTITY)), epoch_changed=False) is None
    assert broken_part(sent[1], last, epoch_changed=False) is None
