"""Rows of pending asks, and whether a session waits for people only."""

from functools import reduce
from typing import TYPE_CHECKING

import pytest

from fairlead_projector.database import connect
from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.rebuild import digest, rebuild
from fairlead_projector.projection.rows import AskKey, ProjectedSession, SessionRow
from fairlead_projector.stalls import StallDetector
from fairlead_projector.sweep import MovingSessions
from fairlead_schema.events import (
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    SessionEvent,
    SessionPurged,
    ToolInputStarted,
)
from fairlead_schema.permission import (
    CallSource,
    PermissionRequest,
    QuestionRequest,
    ToolSource,
)
from fairlead_schema.subjects import Address
from fairlead_session.fold.evolve import evolve
from fairlead_session.people.pending import waits_for_people
from fairlead_session.state.session import Session
from services.projector.tests.projection.test_session_row import (
    ADMITTED,
    AT,
    CLAIMED,
    CREATED,
    DISPATCHED,
    OTHER,
    PROMOTED,
    STARTED,
    call_events,
    release,
    settlement,
)

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

BEFORE: tuple[SessionEvent, ...] = (CREATED, ADMITTED, CLAIMED, PROMOTED, DISPATCHED, STARTED)
BOTH = (*BEFORE, *call_events("c1"), *call_events("c2"))


def ask_permission(call: str = "c1", resource: str = "git push") -> PermissionAsked:
    source = CallSource(message_id="msg_a", call_id=call)
    request = PermissionRequest(
        id=f"per_{call}", session_id="ses_1", action="bash", resources=(resource,), source=source
    )
    return PermissionAsked(request=request, agent="build")


def ask_question(call: str | None = "c2") -> QuestionAsked:
    tool = ToolSource(message_id="msg_a", call_id=call) if call else None
    return QuestionAsked(
        request=QuestionRequest(id="que_1", session_id="ses_1", questions=(), tool=tool)
    )


def permit(call: str = "c1") -> PermissionReplied:
    return PermissionReplied(request_id=f"per_{call}", reply="once")


PARKED = (*BOTH, ask_permission(), ask_question(), release("parked"))


def row_after(log_builder: "LogBuilder", *events: SessionEvent) -> SessionRow:
    entry = log_builder.commit(AT, *events)
    return row_changes.fold_batch({}, [log_entries.decode_entry(entry)]).sessions[AT]


@pytest.mark.parametrize(
    ("events", "asks", "waiting"),
    [
        (BOTH, 0, False),
        ((*BOTH, ask_permission()), 1, False),
        (PARKED, 2, True),
        ((*PARKED, permit()), 1, False),
        ((*BOTH, ask_permission(), settlement("c2")), 1, True),
        ((*PARKED, QuestionReplied(request_id="que_1", answers=()), settlement("c2")), 1, True),
        ((CREATED, ask_question(None)), 1, False),
    ],
)
def test_a_row_knows_whether_only_people_can_move_it(
    log_builder: "LogBuilder", events: tuple[SessionEvent, ...], asks: int, *, waiting: bool
) -> None:
    """K-25: the session waits for people when every open call asks."""
    row = row_after(log_builder, *events)

    assert (row.asks, row.waiting) == (asks, waiting)


UNFINISHED_INPUT = ToolInputStarted(assistant_message_id="msg_a", call_id="c3", name="bash")
ANSWERED = QuestionReplied(request_id="que_1", answers=())
ASKS = (UNFINISHED_INPUT, ask_permission(), ask_question(), release("parked"))
ANSWERS = (permit(), settlement("c1"), ANSWERED, settlement("c2"), CLAIMED)
LOG = (*BOTH, *ASKS, *ANSWERS)


@pytest.mark.parametrize("length", range(1, len(LOG) + 1))
def test_a_row_waits_for_people_exactly_when_the_core_says_so(
    log_builder: "LogBuilder", length: int
) -> None:
    """K-25: this holds also while the input of another call is unfinished."""
    entry = log_builder.commit(AT, *LOG[:length])
    decoded_entry = log_entries.decode_entry(entry)
    session = reduce(evolve, decoded_entry.events, Session(id=AT.session_id))

    (row,) = row_changes.fold_batch({}, [decoded_entry]).sessions.values()

    assert row.waiting == waits_for_people(session)


def test_a_permission_calls_for_somebody_and_a_refusal_does_not(log_builder: "LogBuilder") -> None:
    """K-15, E-10: a declined session rests, and nothing wakes it."""
    decline = PermissionReplied(request_id="per_c1", reply="reject")
    dismissal = QuestionRejected(request_id="que_1")
    stop = (decline, dismissal, InterruptRequested(declined="it"), release("declined"))

    assert row_after(log_builder, *PARKED, permit()).owed
    row = row_changes.fold_batch(
        {}, [log_entries.decode_entry(log_builder.commit(OTHER, *PARKED, *stop))]
    ).sessions[OTHER]
    assert (row.owed, row.work_requested, row.asks, row.waiting) == (False, False, 0, False)


def test_only_what_waits_is_a_row(log_builder: "LogBuilder") -> None:
    """K-14, N-24: an ask answered in its own batch has no row; a later answer removes the row."""
    sessions: dict[Address, ProjectedSession] = {}
    first = row_changes.fold_batch(
        sessions, [log_entries.decode_entry(log_builder.commit(AT, *PARKED))]
    )
    second = row_changes.fold_batch(
        sessions, [log_entries.decode_entry(log_builder.commit(AT, permit()))]
    )
    whole = row_changes.fold_batch(
        {}, [log_entries.decode_entry(log_builder.commit(OTHER, *BOTH, ask_permission(), permit()))]
    )

    (permission, question) = first.asks.values()
    assert (permission.kind, permission.call_id, permission.message_id) == (
        "permission",
        "c1",
        "msg_a",
    )
    assert (question.kind, question.call_id) == ("question", "c2")
    assert second.answers == [AskKey(*AT, "per_c1")]
    assert (whole.asks, whole.answers) == ({}, [])


@pytest.mark.integration
async def test_what_waits_is_stored_removed_rebuilt_and_purged(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """K-14: a writer that starts in between agrees, and so does a rebuild."""
    log_builder.commit(AT, *PARKED)
    log_builder.commit(OTHER, *PARKED)
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
    asks = "SELECT session_id, request_id FROM read.session_ask ORDER BY 1, 2"
    assert [tuple(row.values()) for row in projection.rows(asks)] == [
        ("ses_1", "per_c1"),
        ("ses_1", "que_1"),
        ("ses_2", "per_c1"),
        ("ses_2", "que_1"),
    ]
    async with projection.run():
        await log_builder.append(AT, permit())
        await log_builder.append(OTHER, SessionPurged())
        await projection.wait_until(projection.is_caught_up)
    assert [tuple(row.values()) for row in projection.rows(asks)] == [("ses_1", "que_1")]

    before = await digest(projection.dsn)
    await rebuild(projection.dsn, log_builder.eventlog, progress=lambda _progress: None)
    assert await digest(projection.dsn) == before


@pytest.mark.integration
async def test_the_sweep_leaves_alone_what_waits_for_people(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """K-25: a waiting session is not stranded; an answered one without an owner is."""
    log_builder.commit(AT, *PARKED)
    log_builder.commit(OTHER, *PARKED, permit())
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)

    async with await connect(projection.dsn) as connection:
        stalls = StallDetector(age_s=0)
        await MovingSessions(connection).watch(stalls, now=0)
    assert stalls.seen == [OTHER]
