"""Call snapshots: a worker decides from a snapshot exactly as it would from the session."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import (
    AttemptDispatched,
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    SessionCreated,
    SessionEvent,
    StepStarted,
    ToolCalled,
    ToolDeferred,
    ToolInputStarted,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import CallSource, PermissionRequest
from fairlead_schema.record import Draft, record
from fairlead_schema.tools.content import Executor, RetryClass
from fairlead_schema.tools.request import CallSnapshot
from fairlead_session.calls.child_ids import TASK
from fairlead_session.calls.lifecycle import Begin, Failed, Succeeded, begin, settle
from fairlead_session.calls.snapshot import session_from_snapshot, snapshot_call
from fairlead_session.fold.evolve import evolve
from fairlead_session.next_move import is_moving
from fairlead_session.state.session import Session

MODEL = ModelRef(provider_id="acme", id="fast")
BEFORE: tuple[SessionEvent, ...] = (
    SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w")),
    ExecutionClaimed(generation=3, runner="run_a"),
    AttemptDispatched(
        attempt_id="att_1", assistant_message_id="msg_a", agent="build", model=MODEL, step=1
    ),
    StepStarted(assistant_message_id="msg_a", agent="build", model=MODEL),
)


def folded(session: Session, *events: SessionEvent) -> Session:
    drafts = tuple(Draft(f"evt_{number}", 7, event) for number, event in enumerate(events))
    return reduce(evolve, record(drafts, after=session.seq), session)


def called(
    id_: str = "c1", *, retry: RetryClass = "pure", given_: Mapping[str, Any] | None = None
) -> tuple[SessionEvent, ...]:
    return (
        ToolInputStarted(assistant_message_id="msg_a", call_id=id_, name="read"),
        ToolCalled(
            assistant_message_id="msg_a",
            call_id=id_,
            tool="read",
            input=dict(given_ or {"path": "a"}),
            provider=Executor(),
            agent="build",
            retry=retry,
            revision="r1",
        ),
    )


def session(*events: SessionEvent) -> Session:
    return folded(Session(id="ses_1"), *BEFORE, *events)


def session_of_snapshot(session_: Session, id_: str = "c1") -> Session:
    """The session that a worker builds from a snapshot that was sent over the wire."""
    snapshot = snapshot_call(session_, 42, "msg_a", id_)
    assert snapshot is not None
    wired = CallSnapshot.model_validate_json(snapshot.model_dump_json(by_alias=True))
    assert (wired.position, wired.seq) == (42, session_.seq)
    return session_from_snapshot(session_.id, "msg_a", id_, wired)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    given_=st.dictionaries(st.text(min_size=1), JSON, max_size=4),
    retry=st.sampled_from(["pure", "idempotent", "once"]),
    others=st.integers(0, 3),
)
def test_it_begins_and_settles_as_from_the_session(
    given_: dict[str, Any], retry: RetryClass, others: int
) -> None:
    """E-01: the same start, the same settlement, whatever else the session holds."""
    more = tuple(event for number in range(others) for event in called(f"x{number}"))
    whole = session(*more, *called(retry=retry, given_=given_))
    bare = session_of_snapshot(whole)

    decided = begin(whole, "msg_a", "c1", "wkr_a", None)
    assert decided == begin(bare, "msg_a", "c1", "wkr_a", None)
    assert isinstance(decided, Begin)
    whole, bare = folded(whole, decided.event), folded(bare, decided.event)
    for outcome in (Succeeded(structured={"a": 1}), Failed("no")):
        events = settle(whole, decided.started_call, outcome)
        assert events == settle(bare, decided.started_call, outcome) != ()
        assert folded(bare, *events).seq == folded(whole, *events).seq


def test_the_last_settlement_wakes_the_waiting_session() -> None:
    """E-24: as far as the worker knows, its call was the last one."""
    bare = session_of_snapshot(session(*called()))
    event = ToolSucceeded(
        assistant_message_id="msg_a", call_id="c1", structured={}, content=(), provider=Executor()
    )
    settled = folded(bare, event)

    assert is_moving(settled)
    assert settled.execution.owner is not None
    assert settled.execution.owner.runner == "run_a"


ASKED = PermissionAsked(
    request=PermissionRequest(
        id="per_1",
        session_id="ses_1",
        action="read",
        resources=("a",),
        source=CallSource(message_id="msg_a", call_id="c1"),
    ),
    agent="build",
)
STARTED = ToolStarted(assistant_message_id="msg_a", call_id="c1", worker="wkr_b", generation=3)


@pytest.mark.parametrize(
    "after",
    [
        (STARTED,),
        (STARTED, ToolDeferred(assistant_message_id="msg_a", call_id="c1", until=9)),
        (ASKED,),
        (ASKED, PermissionReplied(request_id="per_1", reply="once")),
        (InterruptRequested(),),
        (ExecutionReleased(generation=3, reason="parked"),),
    ],
    ids=["started", "deferred", "asks", "granted", "interrupted", "parked"],
)
def test_a_call_with_more_state_than_a_snapshot_holds_has_none(
    after: tuple[SessionEvent, ...],
) -> None:
    """K-06, E-16: then the worker reads the log."""
    assert snapshot_call(session(*called(), *after), 42, "msg_a", "c1") is None


def test_there_is_none_of_a_call_that_another_session_answers() -> None:
    """A worker reads the child session, and a read that lags behind the snapshot misses the call."""
    first, second = called()
    assert isinstance(second, ToolCalled)
    task = second.model_copy(update={"tool": TASK})

    assert snapshot_call(session(first, task), 42, "msg_a", "c1") is None


def test_there_is_none_of_a_call_that_is_not_open() -> None:
    assert snapshot_call(session(), 42, "msg_a", "c1") is None
    assert snapshot_call(session(*called()), 42, "msg_a", "other") is None
