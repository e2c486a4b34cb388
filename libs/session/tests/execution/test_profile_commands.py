"""Switches: agent, model, place, archive, and the end."""

from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    admitted,
    claimed,
    given,
    messages,
    recorded,
    released,
    then,
)

from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import (
    AgentSwitched,
    InterruptRequested,
    ModelSwitched,
    SessionArchived,
    SessionMoved,
    SessionPurged,
)
from fairlead_schema.location import LocationRef
from fairlead_session.execution.switches import archive, move, switch_agent, switch_model
from fairlead_session.fold.evolve import evolve
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.info import info
from fairlead_session.state.session import Session

SLOW = ModelRef(provider_id="acme", id="slow")
THERE = LocationRef(directory="/there")


def test_an_agent_switch_is_always_said() -> None:
    """I-04, I-05: even to the same agent; it changes the session and adds a message."""
    session = given(CREATED, switch_agent("msg_1", "plan"), switch_agent("msg_2", "plan"))

    assert info(session).agent == "plan"
    assert [message.type for message in messages(session)] == ["agent-switched"] * 2
    assert switch_agent("msg_3", "plan") == AgentSwitched(message_id="msg_3", agent="plan")


def test_a_model_switch_changes_the_session_and_adds_a_message() -> None:
    """I-04: the context epoch stays."""
    session = given(CREATED, INITIALISED)

    outcome = switch_model(session, "msg_1", SLOW)

    assert outcome == ModelSwitched(message_id="msg_1", model=SLOW)
    after = then(session, outcome)
    assert (after.profile and after.profile.model) == SLOW
    assert [message.type for message in messages(after)] == ["model-switched"]
    assert after.epoch == session.epoch


def test_the_selected_model_again_is_nothing_new() -> None:
    """I-05: an omitted variant is the default one; another variant is another model."""
    session = given(CREATED, ModelSwitched(message_id="msg_1", model=MODEL))
    default = MODEL.model_copy(update={"variant": "default"})
    high = MODEL.model_copy(update={"variant": "high"})

    assert switch_model(session, "msg_2", MODEL) is None
    assert switch_model(session, "msg_2", default) is None
    assert switch_model(session, "msg_2", high) is not None
    assert switch_model(given(CREATED), "msg_2", MODEL) is not None


def test_a_move_to_the_same_directory_is_none() -> None:
    """N-16: nothing to say, and no epoch lost."""
    assert move(given(CREATED, INITIALISED), LocationRef(directory="/work")) == ()


def test_a_move_ends_the_epoch_and_forgets_the_workspace() -> None:
    """N-21: the new place is exactly what was asked for."""
    here = LocationRef(directory="/work", workspace_id="wrk_1")
    session = given(CREATED.model_copy(update={"location": here}), INITIALISED)

    events = move(session, THERE)

    assert events == (SessionMoved(location=THERE),)
    after = then(session, *events)
    assert info(after).location == THERE
    assert after.epoch is None


def test_a_move_stops_what_runs_at_the_old_place() -> None:
    """N-22: the interrupt and the move are one commit; the inbox goes along."""
    session = given(CREATED, INITIALISED, admitted("msg_1"), claimed())

    events = move(session, THERE)

    assert events == (InterruptRequested(), SessionMoved(location=THERE))
    after = then(session, *events)
    assert after.execution.interrupted
    assert after.inbox.pending == session.inbox.pending
    rested = then(session, released("interrupted"))
    assert move(rested, THERE) == (SessionMoved(location=THERE),)


def test_a_session_is_archived_once() -> None:
    session = given(CREATED)

    outcome = archive(session)

    assert outcome == SessionArchived()
    assert archive(then(session, outcome)) is None


def test_of_a_purged_session_nothing_is_left() -> None:
    """H-29: no profile, no inbox, no owner; only the sequence, so that nobody begins anew."""
    session = given(CREATED, admitted("msg_1"), claimed(), SessionPurged())

    assert session == Session(id="ses_1", seq=4)


def test_a_purge_folds_without_what_came_before_it() -> None:
    """H-29: the commits before it are erased at any time, also half-way through a read."""
    (last,) = recorded(SessionPurged(), after=40)

    assert evolve(Session(id="ses_1"), last) == Session(id="ses_1", seq=41)
    assert evolve(given(CREATED, admitted("msg_1")), last) == Session(id="ses_1", seq=41)
    assert thaw(freeze(Session(id="ses_1", seq=41))) == Session(id="ses_1", seq=41)
