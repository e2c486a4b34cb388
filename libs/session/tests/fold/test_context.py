"""The epoch in the log: rebuilt by replay, ended by a move and a revert, kept by a model switch."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    PROPERTY,
    claimed,
    dispatched,
    given,
    messages,
    observed,
    promoted,
    sample,
    step_started,
    then,
)

from fairlead_schema.catalog import ModelRef
from fairlead_schema.context import READ_DIRECTORIES_MAX, ContextSample
from fairlead_schema.events import (
    ContextReplaced,
    ContextSnapshotAdvanced,
    ContextUpdated,
    RevertCommitted,
    SessionEvent,
    SessionMoved,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.message import SystemMessage
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.state.session import Session
from fairlead_session.turn.boundary import TurnIds, begin_epoch, prepare_turn
from fairlead_session.turn.epoch import Blocked
from fairlead_session.turn.history import history
from fairlead_session.turn.session_context import MODEL_KEY, add_session_sources

PLACE = observed("core/environment", "/work")
OTHER = ModelRef(provider_id="acme", id="deep")


def changed(session: Session, sample_: ContextSample, id_: str = "msg_sys") -> Session:
    return then(session, *prepare_turn(session, (), sample_, TurnIds("att_1", "msg_a", id_)))


def begin(sample_: ContextSample) -> Session:
    events = begin_epoch(sample_)
    assert not isinstance(events, Blocked)
    return given(CREATED, *events)


def read(path: object, *, tool: str = "read", call: str = "call_1") -> tuple[SessionEvent, ...]:
    return (
        ToolInputStarted(assistant_message_id="msg_a", call_id=call, name=tool),
        ToolCalled(
            assistant_message_id="msg_a",
            call_id=call,
            tool=tool,
            input={"path": path},
            provider=Executor(),
        ),
    )


def succeeded(call: str = "call_1") -> ToolSucceeded:
    return ToolSucceeded(
        assistant_message_id="msg_a",
        call_id=call,
        structured={},
        content=(),
        provider=Executor(),
    )


TURN = (CREATED, claimed(), INITIALISED, dispatched(), step_started())


def test_an_update_is_ordinary_history_and_replay_rebuilds_it() -> None:
    """F-29, F-30: a system message in the transcript, seen by the next request."""
    session = changed(begin(sample(PLACE)), sample(observed("core/environment", "/else")))

    assert [message.type for message in messages(session)] == ["system"]
    assert history(session) == messages(session)


def test_the_epoch_itself_is_in_the_log() -> None:
    """F-31: replay rebuilds baseline and snapshot too, and so does a snapshot of the fold."""
    session = changed(begin(sample(PLACE)), sample(observed("core/environment", "/else")))

    assert session.epoch is not None
    assert session.epoch.snapshot["core/environment"].value == "/else"
    assert session.epoch.baseline[0].text == "core/environment is /work"
    assert thaw(freeze(session)) == session


def test_a_removal_is_told_in_order_with_the_stored_words() -> None:
    """F-32, M-05: the message stands where the source left, and the snapshot is empty then."""
    session = begin(sample(observed("core/instructions", 1, removed="No instructions now.")))

    after = changed(session, sample())

    (lines,) = messages(after)
    assert isinstance(lines, SystemMessage)
    assert lines.text == "No instructions now."
    assert after.epoch is not None
    assert after.epoch.snapshot == {}
    assert changed(after, sample(), "msg_again") == after


def test_a_model_switch_is_told_and_keeps_the_epoch() -> None:
    """F-23, F-33: the baseline stays, and earlier system messages stay with it."""
    session = begin(add_session_sources(sample(PLACE), MODEL))
    elsewhere = sample(observed("core/environment", "/else"))
    moved = changed(session, add_session_sources(elsewhere, MODEL), "msg_s1")

    switched = changed(moved, add_session_sources(elsewhere, OTHER), "msg_s2")

    assert (switched.epoch, session.epoch) != (None, None)
    assert switched.epoch is not None
    assert session.epoch is not None
    assert switched.epoch.seq == session.epoch.seq
    assert switched.epoch.baseline == session.epoch.baseline
    assert [message.id for message in history(switched)] == ["msg_s1", "msg_s2"]
    (_, lines) = history(switched)
    assert isinstance(lines, SystemMessage)
    assert "acme/deep" in lines.text
    assert "core/" not in lines.text


def test_the_model_is_the_sessions_own_source() -> None:
    """F-23, F-25: before the location's sources; a location cannot speak for it."""
    forged = sample(observed(MODEL_KEY, "forged"), PLACE)

    combined = add_session_sources(forged, MODEL)

    assert [source.key for source in combined.observations] == [MODEL_KEY, "core/environment"]
    assert "forged" not in str(combined)
    assert add_session_sources(sample(PLACE), None) == sample(PLACE)


def test_a_committed_revert_never_leaves_the_snapshot_ahead_of_the_messages() -> None:
    """F-45: an update that leaves the transcript takes its epoch along; the next turn begins anew."""
    news = (
        ContextUpdated(message_id="msg_s", text="news"),
        ContextSnapshotAdvanced(snapshot={}),
    )
    before = given(CREATED, INITIALISED, promoted("msg_1"), *news, promoted("msg_2"))

    after_the_news = then(before, RevertCommitted(message_id="msg_s"))
    before_the_news = then(before, RevertCommitted(message_id="msg_1"))

    assert after_the_news.epoch == before.epoch
    assert before_the_news.epoch is None
    assert [message.id for message in history(before_the_news)] == ["msg_1"]


def test_a_revert_keeps_an_epoch_that_began_after_the_update() -> None:
    """F-40, F-45: a later baseline already says everything."""
    before = given(
        CREATED,
        INITIALISED,
        promoted("msg_1"),
        ContextUpdated(message_id="msg_s", text="news"),
        ContextReplaced(baseline=(), snapshot={}, reason="compaction"),
    )

    assert then(before, RevertCommitted(message_id="msg_1")).epoch == before.epoch


@pytest.mark.parametrize(
    ("path", "directory"),
    [
        ("src/api/main.py", "/work/src/api"),
        ("/work/docs/a.md", "/work/docs"),
        ("src/../lib/x.py", "/work/lib"),
        ("../out.txt", "/"),
        ("top.txt", "/work"),
    ],
)
def test_a_successful_read_is_remembered_by_its_directory(path: str, directory: str) -> None:
    """L-28: in the fold of the log, so that replay finds the nested instructions again."""
    session = given(*TURN, *read(path), succeeded())

    assert session.read_directories == (directory,)
    assert thaw(freeze(session)) == session


def test_only_a_successful_read_is_remembered() -> None:
    """L-28: no failure, no other tool, no path that is none; and each directory once."""
    failed = ToolFailed(
        assistant_message_id="msg_a",
        call_id="call_1",
        error=ErrorInfo(message="no"),
        provider=Executor(),
    )

    assert given(*TURN, *read("src/a.py")).read_directories == ()
    assert given(*TURN, *read("src/a.py"), failed).read_directories == ()
    assert given(*TURN, *read("src/a.py", tool="write"), succeeded()).read_directories == ()
    assert given(*TURN, *read(7), succeeded()).read_directories == ()
    again = (*read("src/b.py", call="call_2"), succeeded("call_2"))
    assert given(*TURN, *read("src/a.py"), succeeded(), *again).read_directories == ("/work/src",)


def test_what_was_read_elsewhere_is_forgotten_by_a_move() -> None:
    """L-28, F-44: a move clears the epoch, and the new place has its own directories."""
    session = given(*TURN, *read("src/a.py"), succeeded())

    moved = then(session, SessionMoved(location=LocationRef(directory="/else")))

    assert (moved.read_directories, moved.epoch) == ((), None)


@PROPERTY
@for_all(st.lists(st.integers(0, 2 * READ_DIRECTORIES_MAX), max_size=40))
def test_remembered_directories_are_bounded_and_never_dropped(numbers: list[int]) -> None:
    """L-28: what was told stays told."""
    names = (*range(READ_DIRECTORIES_MAX - 5), *numbers)
    reads = (event for name in names for event in (*read(f"{name}/x"), succeeded()))
    session = given(*TURN, *reads)

    directories = session.read_directories

    assert len(directories) == len(set(directories)) <= READ_DIRECTORIES_MAX
    assert directories[: READ_DIRECTORIES_MAX - 5] == tuple(
        f"/work/{at}" for at in range(READ_DIRECTORIES_MAX - 5)
    )
