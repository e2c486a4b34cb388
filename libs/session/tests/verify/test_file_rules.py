"""The rules about reverts and moves with changes: logs that keep them, and logs that break each."""

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    admitted,
    claimed,
    dispatched,
    promoted,
    recorded,
    released,
)

from fairlead_schema.events import (
    MoveBegun,
    MoveEnded,
    MoveFailed,
    MoveRequested,
    RevertBegun,
    RevertCleared,
    RevertCommitted,
    RevertFailed,
    RevertRequested,
    RevertStaged,
    SessionEvent,
    SessionMoved,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_session.verify.verify import verify

STAGE = RevertRequested(action="stage", message_id="msg_1")
CLEAR = RevertRequested(action="clear")
BEGUN = RevertBegun(original="aaa", target="bbb")
STAGED = RevertStaged(revert=RevertState(message_id="msg_1"))
FAILED = RevertFailed(reason="no git")
THERE = LocationRef(directory="/there")
MOVE = MoveRequested(location=THERE)
MOVE_BEGUN = MoveBegun(before="a", target="b", changed="c", kept="d")
MOVED = SessionMoved(location=THERE)
MOVE_FAILED = MoveFailed(reason="conflict")
WORK = (admitted("msg_2"), promoted("msg_2"), dispatched())


def broken(*events: SessionEvent) -> list[str]:
    """The rules that a log breaks."""
    return [violation.rule for violation in verify(recorded(CREATED, INITIALISED, *events))]


@pytest.mark.parametrize(
    "events",
    [
        (STAGE, claimed(), BEGUN, STAGED, CLEAR, BEGUN, RevertCleared(), released()),
        (STAGE, claimed(), BEGUN, claimed(2, "run_b"), STAGED, released(generation=2)),
        (STAGE, claimed(), FAILED, STAGE, BEGUN, FAILED),
        (STAGE, claimed(), BEGUN, STAGED, RevertCommitted(message_id="msg_1"), *WORK),
        (STAGE, claimed(), STAGED, STAGE, STAGED),
        (MOVE, claimed(), MOVE_BEGUN, MOVED, MoveEnded(), *WORK),
        (MOVE, claimed(), MOVED, MoveEnded(), MOVED),
        (MOVE, claimed(), MOVE_BEGUN, claimed(2, "run_b"), MOVE_FAILED, MOVE, MOVE_FAILED),
        (
            *(MOVE, claimed(), MOVE_BEGUN, MOVED),
            *(released("context-unavailable"), claimed(2), MoveEnded(undiscarded="busy")),
        ),
        (MOVED, STAGE, claimed(), FAILED, MOVED),
    ],
)
def test_a_log_that_a_runner_writes_breaks_no_rule(events: tuple[SessionEvent, ...]) -> None:
    """N-01 to N-08, N-17 to N-20."""
    assert broken(*events) == []


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        ((claimed(), BEGUN), ["revert-requested"]),
        ((claimed(), STAGED), ["revert-requested"]),
        ((claimed(), FAILED), ["revert-requested"]),
        ((STAGE, claimed(), BEGUN, BEGUN), ["revert-once"]),
        ((STAGE, STAGE), ["revert-once"]),
        ((STAGE, claimed(), BEGUN, STAGED, STAGED), ["revert-requested"]),
        ((STAGE, claimed(), RevertCleared()), ["revert-ended"]),
        ((STAGE, claimed(), CLEAR, STAGED), ["revert-once", "revert-ended"]),
        ((STAGE, BEGUN), ["revert-owned"]),
        ((STAGE, STAGED), ["revert-owned"]),
        ((STAGE, claimed(), BEGUN, RevertCommitted(message_id="msg_1")), ["revert-ended"]),
        ((STAGE, claimed(), BEGUN, MOVED), ["revert-ended"]),
        ((STAGE, claimed(), BEGUN, *WORK), ["revert-alone", "revert-alone"]),
        ((STAGE, claimed(), BEGUN, claimed(2, "run_b"), *WORK), ["revert-alone", "revert-alone"]),
    ],
)
def test_a_revert_that_breaks_a_rule_is_found(
    events: tuple[SessionEvent, ...], rules: list[str]
) -> None:
    """N-01 to N-08: begun after requested, ended once, by an owner, with no work in between."""
    assert broken(*events) == rules


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        ((claimed(), MOVE_BEGUN), ["move-requested"]),
        ((claimed(), MoveEnded()), ["move-requested"]),
        ((MOVE, MOVE), ["move-once"]),
        ((MOVE, claimed(), MOVE_BEGUN, MOVE_BEGUN), ["move-once"]),
        ((MOVE, claimed(), MOVE_BEGUN, MOVED, MOVED), ["move-once"]),
        ((MOVE, claimed(), MOVE_BEGUN, MOVED, MOVE_FAILED), ["move-ended"]),
        ((MOVE, claimed(), MOVE_BEGUN, MoveEnded()), ["move-ended"]),
        ((MOVE, claimed(), MOVE_BEGUN, MOVED, MoveEnded(), MoveEnded()), ["move-requested"]),
        ((MOVE, MOVE_FAILED), ["move-owned"]),
        ((MOVE, STAGE), ["move-alone"]),
        ((MOVE, claimed(), MOVE_BEGUN, MOVED, *WORK), ["move-alone", "move-alone"]),
    ],
)
def test_a_move_that_breaks_a_rule_is_found(
    events: tuple[SessionEvent, ...], rules: list[str]
) -> None:
    """N-17 to N-20: begun after requested, moved once, ended once, with no work in between."""
    assert broken(*events) == rules
