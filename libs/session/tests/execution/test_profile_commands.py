"""Commands about the session itself: create, agent, model, location, archive, purge."""

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    admitted,
    claimed,
    dispatched,
    given,
    messages,
    recorded,
    released,
    step_started,
    then,
)

from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import (
    AgentSwitched,
    BudgetSet,
    InterruptRequested,
    ModelSwitched,
    PermissionAsked,
    PermissionReplied,
    SessionArchived,
    SessionEvent,
    SessionMoved,
    SessionPurged,
    ToolCalled,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import CallSource, PermissionRequest
from fairlead_schema.prompt import Prompt
from fairlead_schema.tools.content import Executor
from fairlead_session.execution.commands import (
    SessionIdUsed,
    SessionIsArchived,
    archive,
    compact,
    create,
    purge,
    resume,
    switch_agent,
    switch_model,
    unarchive,
)
from fairlead_session.fold.evolve import evolve
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.info import info
from fairlead_session.input.admission import admit
from fairlead_session.input.shell import request_shell
from fairlead_session.next_move import is_moving
from fairlead_session.relocation.commands import move
from fairlead_session.state.session import Session
from fairlead_session.state.usage import Budget

SLOW = ModelRef(provider_id="acme", id="slow")
THERE = LocationRef(directory="/there")


ASKED = PermissionAsked(
    request=PermissionRequest(
        id="per_1",
        session_id="ses_1",
        action="bash",
        resources=("ls",),
        source=CallSource(message_id="msg_a", call_id="call_1"),
    ),
    agent="build",
)
PARKED_ON_ASK = (
    CREATED,
    claimed(),
    dispatched(),
    step_started(),
    ToolCalled(
        assistant_message_id="msg_a", call_id="call_1", tool="bash", input={}, provider=Executor()
    ),
    ASKED,
    released("parked"),
)


def test_a_session_is_created_once_with_its_budget() -> None:
    """Creating again writes nothing, whatever the second command says."""
    missing = Session(id="ses_1")

    assert create(missing, CREATED) == (CREATED,)
    events = create(missing, CREATED, Budget(1.5, None))
    assert events == (CREATED, BudgetSet(cost=1.5))
    assert create(given(CREATED), CREATED, Budget(1.5, None)) == ()


def test_the_id_of_a_purged_session_is_used_up() -> None:
    """H-29: nobody begins a new session with the id of an old one."""
    session = given(CREATED)

    purged = then(session, *purge(session))

    assert create(purged, CREATED) == SessionIdUsed("ses_1")
    assert purge(purged) == ()


def test_archiving_closes_asks_and_stops_their_calls() -> None:
    """Nobody answers an ask of an archived session, so the ask closes and the work stops."""
    session = given(*PARKED_ON_ASK)

    events = archive(session)

    rejected = PermissionReplied(request_id="per_1", reply="reject")
    assert events == (rejected, InterruptRequested(), SessionArchived())
    after = then(session, *events)
    assert (after.asks.permissions, after.execution.interrupted) == ({}, True)


@pytest.mark.parametrize(
    "running",
    [
        (claimed(), dispatched()),
        (admitted("msg_1"), claimed()),
        (admitted("msg_1"),),
    ],
)
def test_archiving_stops_what_runs_or_would_begin(running: tuple[SessionEvent, ...]) -> None:
    """D16: an archived session does nothing more, and its inbox stays."""
    session = given(CREATED, *running)

    events = archive(session)

    assert events == (InterruptRequested(), SessionArchived())
    after = then(session, *events)
    assert after.inbox.pending == session.inbox.pending
    assert not after.execution.work_requested


def test_an_archived_session_takes_no_work_until_it_is_unarchived() -> None:
    """D16: prompts, resumes and compactions are refused; an exact retry gets its receipt."""
    before = given(CREATED, admitted("msg_1"))
    session = then(before, *archive(before))
    refused = SessionIsArchived("ses_1")
    hello = Prompt(text="hello")

    assert admit(session, "msg_2", hello, "steer") == refused
    assert admit(session, "msg_1", hello, "steer") == ()
    assert (resume(session), compact(session)) == (refused, refused)
    assert request_shell(session, "msg_3", "call_3", "ls", "build", pending_max=9) == refused
    assert unarchive(before) == ()

    back = then(session, *unarchive(session))

    assert info(back).time.archived is None
    assert not is_moving(back)
    assert admit(back, "msg_2", hello, "steer") != refused
    assert resume(back) != refused


def test_commands_change_nothing_in_a_session_that_does_not_exist() -> None:
    missing = Session(id="ses_1")

    assert switch_agent(missing, "msg_1", "plan") == ()
    assert switch_model(missing, "msg_1", SLOW) == ()
    assert (move(missing, THERE), archive(missing), purge(missing)) == ((), (), ())


def test_an_agent_switch_is_always_said() -> None:
    """I-04, I-05: even to the same agent; it changes the session and adds a message."""
    session = given(CREATED)
    session = then(session, *switch_agent(session, "msg_1", "plan"))
    session = then(session, *switch_agent(session, "msg_2", "plan"))

    assert info(session).agent == "plan"
    assert [message.type for message in messages(session)] == ["agent-switched"] * 2
    assert switch_agent(session, "msg_3", "plan") == (
        AgentSwitched(message_id="msg_3", agent="plan"),
    )


def test_a_model_switch_changes_the_session_and_adds_a_message() -> None:
    """I-04: the context epoch stays."""
    session = given(CREATED, INITIALISED)

    outcome = switch_model(session, "msg_1", SLOW)

    assert outcome == (ModelSwitched(message_id="msg_1", model=SLOW),)
    after = then(session, *outcome)
    assert (after.profile and after.profile.model) == SLOW
    assert [message.type for message in messages(after)] == ["model-switched"]
    assert after.epoch == session.epoch


def test_the_selected_model_again_is_nothing_new() -> None:
    """I-05: an omitted variant is the default one; another variant is another model."""
    session = given(CREATED, ModelSwitched(message_id="msg_1", model=MODEL))
    default = MODEL.model_copy(update={"variant": "default"})
    high = MODEL.model_copy(update={"variant": "high"})

    assert switch_model(session, "msg_2", MODEL) == ()
    assert switch_model(session, "msg_2", default) == ()
    assert switch_model(session, "msg_2", high) != ()
    assert switch_model(given(CREATED), "msg_2", MODEL) != ()


def test_a_move_to_the_same_directory_is_none() -> None:
    """N-16: nothing to say, and no epoch lost."""
    assert move(given(CREATED, INITIALISED), LocationRef(directory="/work")) == ()


def test_a_move_ends_the_epoch_and_forgets_the_workspace() -> None:
    """N-21: the new place is exactly what was asked for."""
    location = LocationRef(directory="/work", workspace_id="wrk_1")
    session = given(CREATED.model_copy(update={"location": location}), INITIALISED)

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

    assert outcome == (SessionArchived(),)
    assert archive(then(session, *outcome)) == ()


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
