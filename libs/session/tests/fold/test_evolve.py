"""The fold is total: every event of the manifest folds, in any order the log allows."""

import json
from pathlib import Path

import pytest
from hypothesis import given as over
from hypothesis import strategies as st
from libs.session.tests.conftest import CREATED, INITIALISED, PROPERTY, given, ms, recorded, then

from fairlead_schema.events import (
    MANIFEST,
    ContextSnapshotAdvanced,
    InputCancelled,
    InputEdited,
    PermissionAsked,
    PermissionReplied,
    PromptAdmitted,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    RevertCleared,
    RevertStaged,
    SessionArchived,
    SessionEvent,
    SessionStored,
    TodoUpdated,
)
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Recorded, decode_event
from fairlead_session.fold.evolve import evolve
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.state.session import Session

GOLDEN = Path(__file__).parents[3] / "schema" / "tests" / "golden"


def golden(kind: type[SessionEvent]) -> SessionEvent:
    path = GOLDEN / f"{kind.type}.{kind.version}.json"
    return decode_event(json.loads(path.read_text())).event


EVENTS = tuple(golden(kind) for kind in MANIFEST)
PENDING = tuple(
    PromptAdmitted(message_id=event.message_id, prompt=Prompt(text="x"), delivery="steer")
    for event in EVENTS
    if isinstance(event, InputCancelled | InputEdited)
)
SENSIBLE = given(CREATED, INITIALISED, *PENDING)


def folded(session: Session, events: tuple[SessionEvent, ...]) -> Session:
    """Fold what the log would allow: a snapshot advances only inside an epoch."""
    for event in events:
        if session.epoch is not None or not isinstance(event, ContextSnapshotAdvanced):
            session = then(session, event)
    return session


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: str(event.type))
def test_every_event_folds_and_moves_the_sequence_by_one(event: SessionEvent) -> None:
    """I-10, H-01: nothing in the manifest is rejected, and the fold counts each event once."""
    after = then(SENSIBLE, event)

    # Behind the marker of a stored session the seqs begin again.
    assert after.seq == (0 if isinstance(event, SessionStored) else SENSIBLE.seq + 1)
    assert thaw(freeze(after)) == after


@PROPERTY
@over(st.lists(st.sampled_from(EVENTS), max_size=40).map(tuple))
def test_any_order_of_events_folds_and_survives_a_snapshot(
    events: tuple[SessionEvent, ...],
) -> None:
    """I-10: the fold never rejects, and its state goes to bytes and back unchanged."""
    session = folded(SENSIBLE, events)

    assert thaw(freeze(session)) == session


def test_a_gap_in_the_log_is_a_defect() -> None:
    """H-01: the log is read in order, without gaps or repeats."""
    (event,) = recorded(SessionArchived(), after=SENSIBLE.seq + 1)
    again = Recorded("evt_1", SENSIBLE.seq, ms(1), SessionArchived())

    for wrong in (event, again):
        with pytest.raises(AssertionError, match="after"):
            evolve(SENSIBLE, wrong)


@pytest.mark.parametrize("payload", [b"", b"not json", b"{}", b"[]", b"null"])
def test_a_snapshot_that_cannot_be_read_is_folded_again(payload: bytes) -> None:
    """D-08: a snapshot is a cache, and unreadable bytes are no error."""
    assert thaw(payload) is None


def test_a_snapshot_of_another_shape_is_folded_again() -> None:
    """D-08: what another release wrote is never half understood."""
    shape = json.loads(freeze(SENSIBLE))

    assert thaw(json.dumps({**shape, "shape": 1}).encode()) is None
    assert thaw(json.dumps(shape).encode()) == SENSIBLE


def test_asks_wait_until_they_are_answered() -> None:
    """N-24: pending permissions and questions are part of the session."""
    events = tuple(golden(kind) for kind in (PermissionAsked, QuestionAsked))
    session = then(SENSIBLE, *events)
    (permission,), (question,) = session.asks.permissions, session.asks.questions

    replied = PermissionReplied(request_id=permission, reply="once")
    done = then(session, replied, QuestionReplied(request_id=question, answers=()))
    rejected = then(session, QuestionRejected(request_id=question))

    assert (done.asks.permissions, done.asks.questions) == ({}, {})
    assert (len(rejected.asks.permissions), rejected.asks.questions) == (1, {})


def test_todos_are_replaced_as_a_whole() -> None:
    """N-23: the last list is the list."""
    session = then(SENSIBLE, golden(TodoUpdated), TodoUpdated(todos=()))

    assert session.todos == ()
    assert then(SENSIBLE, golden(TodoUpdated)).todos


def test_a_staged_revert_shows_until_it_is_cleared() -> None:
    """N-06, N-07, N-10: staging and clearing change what readers see, and nothing else."""
    staged = then(SENSIBLE, golden(RevertStaged))
    cleared = then(staged, RevertCleared())

    assert staged.profile is not None
    assert staged.profile.revert is not None
    assert cleared.profile is not None
    assert cleared.profile.revert is None
    assert staged.transcript == SENSIBLE.transcript
