"""Stage, clear and commit a revert: what each command writes, and what a session does then."""

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    admitted,
    assistant_of,
    claimed,
    dispatched,
    given,
    messages,
    promoted,
    released,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.events import (
    CompactionEnded,
    CompactionRequested,
    InterruptRequested,
    ResumeRequested,
    RevertBegun,
    RevertCleared,
    RevertCommitted,
    RevertFailed,
    RevertRequested,
    RevertStaged,
)
from fairlead_schema.prompt import Prompt
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.input.admission import MessageIdInUse, admit
from fairlead_session.next_move import (
    CommitRevert,
    Rest,
    ServeRevert,
    Stop,
    TakeTurn,
    is_moving,
    next_move,
)
from fairlead_session.revert.commands import (
    BoundaryCompacted,
    BoundaryUnknown,
    RevertUnderWay,
    clear,
    commit,
    commit_staged,
    stage,
)
from fairlead_session.revert.plan import finish
from fairlead_session.state.revert import FileTrees
from fairlead_session.state.session import Session

TURN = (admitted("msg_1"), claimed(), promoted("msg_1"), dispatched(), step_started())
ANSWERED = (CREATED, INITIALISED, *TURN, step_ended(), released())
STAGE = RevertRequested(action="stage", message_id="msg_1")
BEGUN = RevertBegun(original="aaa", target="bbb")
STAGED = RevertStaged(revert=RevertState(message_id="msg_1", snapshot="aaa", files=()))


def staged_session() -> Session:
    return given(*ANSWERED, STAGE, BEGUN, STAGED)


def test_a_boundary_must_be_a_message_of_the_session() -> None:
    """N-01: an unknown message is refused, and so is a message that a summary has replaced."""
    session = given(*ANSWERED)
    summary = CompactionEnded(message_id="msg_c", reason="manual", text="short", recent="")
    compacted = then(session, summary)

    assert stage(session, "msg_9") == BoundaryUnknown("msg_9")
    assert stage(compacted, "msg_1") == BoundaryCompacted("msg_1")
    assert stage(compacted, "msg_a") == BoundaryCompacted("msg_a")
    assert stage(session, "msg_1") == (STAGE,)


def test_a_session_goes_back_before_its_first_prompt() -> None:
    """Everything leaves, and the next prompt begins anew."""
    session = given(*ANSWERED)
    events = stage(session, "msg_1", before=True)
    assert isinstance(events, tuple)
    staged = then(session, *events, *finish(then(session, *events)))
    assert staged.profile is not None
    assert staged.profile.revert == RevertState(message_id="msg_1", before=True, files=())

    committed = then(staged, *commit_staged(staged))

    assert messages(committed) == ()
    assert committed.profile is not None
    assert committed.profile.revert is None
    assert next_move(then(committed, admitted("msg_2"))) != Rest("idle")
    assert [event.needed_level for event in (*events, *commit_staged(staged))] == [3, 3]


def test_nobody_goes_back_before_a_summary() -> None:
    summary = CompactionEnded(message_id="msg_c", reason="manual", text="short", recent="")
    compacted = then(given(*ANSWERED), summary)

    assert stage(compacted, "msg_c", before=True) == BoundaryCompacted("msg_c")
    assert isinstance(stage(compacted, "msg_c"), tuple)


def test_a_request_before_a_message_is_not_the_one_after_it() -> None:
    session = then(
        given(*ANSWERED), RevertRequested(action="stage", message_id="msg_1", before=True)
    )

    assert stage(session, "msg_1", before=True) == ()
    assert stage(session, "msg_1") == RevertUnderWay()


def test_a_pending_input_is_no_boundary() -> None:
    """N-01: nobody can go back to a message that is not in the conversation yet."""
    assert stage(given(*ANSWERED, admitted("msg_2")), "msg_2") == BoundaryUnknown("msg_2")


def test_a_stage_interrupts_a_running_drain_first() -> None:
    """N-11, decided otherwise: files change only after everything that runs has stopped."""
    running = given(CREATED, INITIALISED, *TURN)

    events = stage(running, "msg_1")

    assert events == (InterruptRequested(), STAGE)
    assert isinstance(events, tuple)
    stopping = then(running, *events)
    assert next_move(stopping) == Stop()
    stopped = then(stopping, step_ended(), released("interrupted"))
    assert is_moving(stopped), "the sweep must find a request that nobody serves"
    assert next_move(stopped) == ServeRevert()


def test_an_interrupt_does_not_lose_a_request() -> None:
    session = then(given(*ANSWERED, STAGE), claimed(2), InterruptRequested())

    assert next_move(session) == Stop()
    assert next_move(then(session, released("interrupted", 2))) == ServeRevert()


def test_the_same_request_again_joins_the_first() -> None:
    session = given(*ANSWERED, STAGE)

    assert stage(session, "msg_1") == ()
    assert stage(session, "msg_1", files=False) == RevertUnderWay()
    assert stage(session, "msg_a") == RevertUnderWay()
    assert clear(session) == RevertUnderWay()
    assert commit(session) == RevertUnderWay()


def test_a_staged_revert_keeps_the_first_tree_through_other_stages() -> None:
    """N-02, N-06: the staged state is on the session; a second stage starts from the same files."""
    session = staged_session()
    assert session.profile is not None
    assert session.profile.revert == STAGED.revert
    assert session.revert.staged == FileTrees("aaa", "bbb")

    again = then(session, RevertRequested(action="stage", message_id="msg_1", files=False))
    assert again.revert.staged == FileTrees("aaa", "bbb")
    assert next_move(again) == ServeRevert()


def test_a_clear_without_a_staged_revert_does_nothing() -> None:
    """N-07"""
    session = given(*ANSWERED)

    assert clear(session) == ()
    assert commit(session) == ()
    assert clear(staged_session()) == (RevertRequested(action="clear"),)


def test_a_cleared_revert_leaves_no_trace_in_the_session() -> None:
    """N-07: the messages were never touched."""
    cleared = then(staged_session(), RevertRequested(action="clear"), BEGUN, RevertCleared())

    assert cleared.profile is not None
    assert cleared.profile.revert is None
    assert cleared.revert == given(*ANSWERED).revert
    assert messages(cleared) == messages(given(*ANSWERED))
    assert is_at_rest(cleared)


def test_a_failed_request_says_why_and_changes_nothing() -> None:
    failed = then(given(*ANSWERED, STAGE), RevertFailed(reason="no git"))

    assert failed.revert.failed is not None
    assert (failed.revert.failed.seq, failed.revert.failed.reason) == (failed.seq - 1, "no git")
    assert failed.revert.requested is None
    assert is_at_rest(failed)


def test_a_commit_removes_what_came_after_the_boundary() -> None:
    """N-08: the boundary stays; later messages and the input admitted before the stage leave."""
    pending = given(*ANSWERED, admitted("msg_2", resume=False), STAGE, BEGUN, STAGED)

    events = commit(pending)

    assert events == (RevertCommitted(message_id="msg_1", withdrawn=("msg_2",)),)
    assert isinstance(events, tuple)
    after = then(pending, *events)
    assert [message.id for message in messages(after)] == ["msg_1"]
    assert after.inbox.pending == ()
    assert after.profile is not None
    assert after.profile.revert is None
    assert commit(after) == ()


def test_a_removed_message_id_is_never_admissible_again() -> None:
    """N-08, A-29: the ids of removed messages and withdrawn inputs stay taken."""
    pending = given(*ANSWERED, admitted("msg_2", resume=False), STAGE, BEGUN, STAGED)
    after = then(pending, *commit_events(pending))

    assert admit(after, "msg_2", Prompt(text="other"), "steer") == MessageIdInUse("msg_2")
    assert admit(after, "msg_a", Prompt(text="other"), "steer") == MessageIdInUse("msg_a")


def commit_events(session: Session) -> tuple[RevertCommitted, ...]:
    events = commit(session)
    assert isinstance(events, tuple)
    return tuple(event for event in events if isinstance(event, RevertCommitted))


@pytest.mark.parametrize("asked", [admitted("msg_2"), ResumeRequested(), CompactionRequested()])
def test_new_work_commits_a_staged_revert_first(asked: object) -> None:
    """N-10, decided otherwise: no turn runs on a history whose files are gone."""
    session = then(staged_session(), asked)  # type: ignore[arg-type]

    assert next_move(session) == CommitRevert()
    after = then(session, *commit_events(session))
    assert [message.id for message in messages(after)] == ["msg_1"]
    assert not isinstance(next_move(after), CommitRevert | Rest)


def test_a_prompt_after_the_stage_survives_the_commit() -> None:
    """N-10: what was admitted while files changed back is the next prompt, not a part of the past."""
    early = then(given(*ANSWERED, STAGE), admitted("msg_2"), BEGUN, STAGED)

    after = then(early, *commit_events(early))

    move = next_move(after)
    assert isinstance(move, TakeTurn)
    assert [item.message_id for item in move.inputs] == ["msg_2"]


def test_input_from_before_the_stage_does_not_commit_the_revert() -> None:
    pending = given(*ANSWERED, admitted("msg_2", resume=False), STAGE, BEGUN, STAGED)

    assert next_move(then(pending, ResumeRequested(forced=False))) == Rest("idle")


def test_replaying_the_log_reproduces_the_truncation() -> None:
    """N-09: events are never deleted."""
    first = then(staged_session(), RevertCommitted(message_id="msg_1", withdrawn=()))
    again = given(
        *ANSWERED, STAGE, BEGUN, STAGED, RevertCommitted(message_id="msg_1", withdrawn=())
    )

    assert again == first
    assert first.transcript.find("msg_a") is None
    assert assistant_of(staged_session()).id == "msg_a"
