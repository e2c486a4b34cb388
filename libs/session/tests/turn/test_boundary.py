"""The safe boundary: what becomes durable just before a provider is called, and in which order."""

from libs.session.tests.conftest import (
    CREATED,
    MODEL,
    admitted,
    away,
    given,
    messages,
    observed,
    sample,
    then,
)

from fairlead_schema.context import ContextSample, SnapshotEntry
from fairlead_schema.events import (
    AttemptDispatched,
    ContextInitialised,
    ContextReplaced,
    ContextSnapshotAdvanced,
    ContextUpdated,
    PromptPromoted,
    SessionEvent,
)
from fairlead_schema.message import SystemMessage
from fairlead_session.input.promotion import eligible_inputs
from fairlead_session.state.session import Session
from fairlead_session.turn.boundary import TurnIds, begin_epoch, dispatch, prepare_turn, reconcile
from fairlead_session.turn.epoch import Blocked

IDS = TurnIds("att_1", "msg_a", "msg_sys")
FINGERPRINT = "sys:1 tools:2 msgs:0:3"
MONDAY = sample(observed("core/date", "monday"))
TUESDAY = sample(observed("core/date", "tuesday"))


def initialised(*events: SessionEvent, by: ContextSample = MONDAY) -> Session:
    baseline_events = begin_epoch(by)
    assert not isinstance(baseline_events, Blocked)
    return given(CREATED, *baseline_events, *events)


def crossed(session: Session, sample_: ContextSample) -> tuple[SessionEvent, ...]:
    attempt = dispatch(
        IDS, agent="build", model=MODEL, step=1, request_hash=FINGERPRINT, estimate=7
    )
    return (*prepare_turn(session, eligible_inputs(session), sample_, IDS), attempt)


def test_a_first_baseline_is_one_event_and_no_message() -> None:
    """F-26: the first epoch stores baseline and snapshot, and adds no system message."""
    events = begin_epoch(MONDAY)

    assert not isinstance(events, Blocked)
    assert [type(event) for event in events] == [ContextInitialised]
    session = given(CREATED, *events)
    assert session.epoch is not None
    assert session.epoch.seq == 2
    assert messages(session) == ()


def test_the_epoch_begins_before_the_promotion() -> None:
    """F-26: the baseline's sequence lies before every promoted input."""
    session = initialised(admitted("msg_1"))

    after = then(session, *crossed(session, MONDAY))

    assert after.epoch is not None
    promoted_seq = after.inbox.admissions["msg_1"].promoted_seq
    assert promoted_seq is not None
    assert after.epoch.seq < promoted_seq


def test_unavailable_context_blocks_the_first_epoch() -> None:
    """F-27: the session gets no epoch and no event; the keys name the missing sources."""
    assert begin_epoch(sample(away("core/date"))) == Blocked(("core/date",))


def test_promotions_come_first_then_the_context_update_then_the_attempt() -> None:
    """F-29: a boundary has one order: an update comes after the input of the same boundary."""
    session = initialised(admitted("msg_1"), admitted("msg_2"))

    events = crossed(session, TUESDAY)

    assert [type(event) for event in events] == [
        PromptPromoted,
        PromptPromoted,
        ContextUpdated,
        ContextSnapshotAdvanced,
        AttemptDispatched,
    ]
    after = then(session, *events)
    assert [message.type for message in messages(after)] == ["user", "user", "system"]
    assert after.epoch is not None
    assert after.epoch.snapshot["core/date"] == SnapshotEntry(value="tuesday")


def test_a_boundary_with_unchanged_context_only_promotes_and_dispatches() -> None:
    """F-28: the baseline stays as it is, and no update is emitted twice."""
    session = initialised(admitted("msg_1"))

    kinds = [type(event) for event in crossed(session, MONDAY)]

    assert kinds == [PromptPromoted, AttemptDispatched]


def test_a_change_is_told_once() -> None:
    """F-42: the update that was committed is not emitted again by the next boundary."""
    session = initialised()

    after = then(session, *reconcile(session, TUESDAY, "msg_sys"))

    assert isinstance(messages(after)[-1], SystemMessage)
    assert reconcile(after, TUESDAY, "msg_other") == ()


def test_unavailable_context_keeps_the_old_baseline_silently() -> None:
    """F-37: while a source is away nothing is emitted; on recovery it is reconciled."""
    session = initialised()

    assert reconcile(session, sample(away("core/date")), "msg_sys") == ()
    assert len(reconcile(session, TUESDAY, "msg_sys")) == 2


def test_a_silent_disappearance_replaces_the_epoch() -> None:
    """F-13, F-40: a new baseline begins here, and earlier system messages no longer count."""
    session = initialised(by=sample(observed("core/a", 1), observed("core/b", 2)))

    events = reconcile(session, sample(observed("core/a", 1)), "msg_sys")

    assert [type(event) for event in events] == [ContextReplaced]
    after = then(session, *events)
    assert after.epoch is not None
    assert (after.epoch.seq, list(after.epoch.snapshot)) == (3, ["core/a"])


def test_a_blocked_replacement_waits() -> None:
    """F-39: while an admitted source is away the old epoch stays in force."""
    session = initialised(by=sample(observed("core/a", 1), observed("core/b", 2)))

    assert reconcile(session, sample(away("core/a")), "msg_sys") == ()


def test_the_attempt_is_recorded_before_it_is_made() -> None:
    """P-01: the dispatched attempt holds the ids that identify its outcome."""
    session = initialised(admitted("msg_1"))

    after = then(session, *crossed(session, MONDAY))

    assert after.turn.attempt is not None
    assert (after.turn.attempt.assistant_message_id, after.turn.attempt.started) == ("msg_a", False)
    assert (after.execution.owed, after.turn.step) == (False, 1)
    assert after.turn.attempt.estimate == 7
    dispatched = crossed(session, MONDAY)[-1]
    assert isinstance(dispatched, AttemptDispatched)
    assert (dispatched.request_hash, dispatched.estimate) == (FINGERPRINT, 7)
