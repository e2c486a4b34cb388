"""What waits for people, projected: listed while it waits, out of the sweep's way, answered again."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest
from pydantic_core import from_json

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_projector import ask_recheck
from fairlead_projector.ask_recheck import Checked, Waiting, expire, look, touched
from fairlead_projector.database import connect, query
from fairlead_projector.projection import log_entries, statements
from fairlead_projector.projection.rebuild import digest, rebuild
from fairlead_projector.projection.rows import AskKey, Projected, SessionRow
from fairlead_schema import subjects
from fairlead_schema.events import (
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    SessionEvent,
    SessionPurged,
)
from fairlead_schema.ids import TenantId
from fairlead_schema.permission import (
    CallSource,
    PermissionRequest,
    QuestionRequest,
    SavedPermission,
    ToolSource,
)
from fairlead_schema.subjects import Address
from fairlead_service import ids
from services.projector.tests.test_summary import (
    ADMITTED,
    AT,
    CLAIMED,
    CREATED,
    DISPATCHED,
    OTHER,
    PROMOTED,
    STARTED,
    called,
    released,
    settled,
)

if TYPE_CHECKING:
    from services.projector.tests.conftest import Given, Projection

BEFORE: tuple[SessionEvent, ...] = (CREATED, ADMITTED, CLAIMED, PROMOTED, DISPATCHED, STARTED)
BOTH = (*BEFORE, *called("c1"), *called("c2"))


def asked(call: str = "c1", resource: str = "git push") -> PermissionAsked:
    source = CallSource(message_id="msg_a", call_id=call)
    request = PermissionRequest(
        id=f"per_{call}", session_id="ses_1", action="bash", resources=(resource,), source=source
    )
    return PermissionAsked(request=request, agent="build")


def questioned(call: str | None = "c2") -> QuestionAsked:
    tool = ToolSource(message_id="msg_a", call_id=call) if call else None
    return QuestionAsked(
        request=QuestionRequest(id="que_1", session_id="ses_1", questions=(), tool=tool)
    )


def permitted(call: str = "c1") -> PermissionReplied:
    return PermissionReplied(request_id=f"per_{call}", reply="once")


PARKED = (*BOTH, asked(), questioned(), released("parked"))


def row_after(given: "Given", *events: SessionEvent) -> SessionRow:
    entry = given.commit(AT, *events)
    return statements.fold({}, [log_entries.read(entry)]).sessions[AT]


@pytest.mark.parametrize(
    ("events", "asks", "waiting"),
    [
        (BOTH, 0, False),
        ((*BOTH, asked()), 1, False),
        (PARKED, 2, True),
        ((*PARKED, permitted()), 1, False),
        ((*BOTH, asked(), settled("c2")), 1, True),
        ((*PARKED, QuestionReplied(request_id="que_1", answers=()), settled("c2")), 1, True),
        ((CREATED, questioned(None)), 1, False),
    ],
)
def test_a_row_knows_whether_only_people_can_move_it(
    given: "Given", events: tuple[SessionEvent, ...], asks: int, *, waiting: bool
) -> None:
    """K-25: every open call asks."""
    row = row_after(given, *events)

    assert (row.asks, row.waiting) == (asks, waiting)


def test_a_permission_calls_for_somebody_and_a_refusal_does_not(given: "Given") -> None:
    """K-15, E-10: after a decline the session rests, and nothing wakes it."""
    declined = PermissionReplied(request_id="per_c1", reply="reject")
    rejected = QuestionRejected(request_id="que_1")
    stopped = (declined, rejected, InterruptRequested(declined="it"), released("declined"))

    assert row_after(given, *PARKED, permitted()).owed
    row = statements.fold({}, [log_entries.read(given.commit(OTHER, *PARKED, *stopped))]).sessions[
        OTHER
    ]
    assert (row.owed, row.work_requested, row.asks, row.waiting) == (False, False, 0, False)


def test_only_what_waits_is_a_row(given: "Given") -> None:
    """K-14, N-24: answered in the same batch it never was one; later it is removed."""
    known: dict[Address, Projected] = {}
    first = statements.fold(known, [log_entries.read(given.commit(AT, *PARKED))])
    second = statements.fold(known, [log_entries.read(given.commit(AT, permitted()))])
    both = statements.fold({}, [log_entries.read(given.commit(OTHER, *BOTH, asked(), permitted()))])

    (permission, question) = first.asks.values()
    assert (permission.kind, permission.call_id, permission.message_id) == (
        "permission",
        "c1",
        "msg_a",
    )
    assert (question.kind, question.call_id) == ("question", "c2")
    assert second.answers == [AskKey(*AT, "per_c1")]
    assert (both.asks, both.answers) == ({}, [])


@pytest.mark.integration
async def test_what_waits_is_stored_removed_rebuilt_and_purged(
    given: "Given", projection: "Projection"
) -> None:
    """K-14: also by a writer that starts in between, and the same from the log alone."""
    given.commit(AT, *PARKED)
    given.commit(OTHER, *PARKED)
    async with projection.running():
        await projection.until(projection.arrived)
    asks = "SELECT session_id, request_id FROM read.session_ask ORDER BY 1, 2"
    assert [tuple(row.values()) for row in projection.rows(asks)] == [
        ("ses_1", "per_c1"),
        ("ses_1", "que_1"),
        ("ses_2", "per_c1"),
        ("ses_2", "que_1"),
    ]
    async with projection.running():
        await given.append(AT, permitted())
        await given.append(OTHER, SessionPurged())
        await projection.until(projection.arrived)
    assert [tuple(row.values()) for row in projection.rows(asks)] == [("ses_1", "que_1")]

    before = await digest(projection.dsn)
    await rebuild(projection.dsn, given.eventlog, progress=lambda _progress: None)
    assert await digest(projection.dsn) == before


@pytest.mark.integration
async def test_the_sweep_leaves_alone_what_waits_for_people(
    given: "Given", projection: "Projection"
) -> None:
    """K-25: not stranded; one whose answer nobody followed is."""
    given.commit(AT, *PARKED)
    given.commit(OTHER, *PARKED, permitted())
    async with projection.running():
        await projection.until(projection.arrived)

    async with await connect(projection.dsn) as connection:
        cursor = await connection.execute(query("load_moving"), {"limit": 10, "now": 1})
        moving = [row[1] for row in await cursor.fetchall()]
    assert moving == ["ses_2"]


def waiting(request_id: str = "per_c1", *, action: str = "bash", at: Address = AT) -> Waiting:
    return Waiting(at, request_id, "permission", "p", 1000, action, ("git push", "ls"))


def approvals(*resources: str) -> list[SavedPermission]:
    return [
        SavedPermission(id=f"psv_{one}", project_id="p", action="bash", resource=one)
        for one in resources
    ]


def test_only_what_an_approval_speaks_of_is_looked_at_again() -> None:
    """K-17: whether it is enough is not decided here."""
    assert touched(waiting(), approvals("git *"))
    assert not touched(waiting(), approvals("make"))
    assert not touched(waiting(action="edit"), approvals("git *"))
    assert not touched(waiting(), [])


def test_each_request_is_held_against_each_revision_once() -> None:
    """K-17: a new request too, whoever approved before it was written."""
    checked, one, two = Checked(), waiting("per_1"), waiting("per_2")
    question = two._replace(kind="question")

    assert checked.due([one, question], 1) == [one]
    checked.note(one, 1)
    assert checked.due([one, two], 1) == [two]
    assert checked.due([one], 2) == [one]
    assert checked.due([], 2) == []
    assert checked.due([one], 1) == [one]


class Ingest:
    """Notes what it is asked, and answers unless it is away."""

    def __init__(self, eventlog: EventLog, tenant: TenantId = "default") -> None:
        assert isinstance(eventlog.requests, MemoryRequests)
        self.asked: list[tuple[str, str]] = []
        self._answerers = eventlog.requests.answerers
        for verb in ("permission.recheck", "ask.expire"):
            self._answerers[subjects.api(tenant, verb)] = partial(self._answer, verb)

    async def _answer(self, verb: str, body: bytes) -> bytes:
        self.asked.append((verb, from_json(body)["requestID"]))
        return b"{}"

    def leave(self) -> None:
        self._answerers.clear()


async def test_what_was_approved_meanwhile_is_handed_to_ingest(given: "Given") -> None:
    """K-17: until it was heard; an ingest that is away hears of it later."""
    eventlog, checked = given.eventlog, Checked()
    await eventlog.approvals.save("default", "p", "bash", ["git *"])
    pending = [waiting("per_1"), waiting("per_2", action="edit")]

    await look(eventlog, pending, checked)
    ingest = Ingest(eventlog)
    await look(eventlog, pending, checked)
    await look(eventlog, pending, checked)

    assert ingest.asked == [("permission.recheck", "per_1")]


async def test_only_what_is_older_than_configured_is_handed_over_as_expired(
    given: "Given",
) -> None:
    """K-19: never by default."""
    ingest = Ingest(given.eventlog)
    fresh = waiting("per_2")._replace(asked_at=ids.now_ms())

    await expire(given.eventlog, [waiting("per_1"), fresh], None)
    await expire(given.eventlog, [waiting("per_1"), fresh], 3600)

    assert ingest.asked == [("ask.expire", "per_1")]


@pytest.mark.integration
async def test_a_projector_looks_at_what_waits_by_itself(
    given: "Given", projection: "Projection"
) -> None:
    """K-17: also after a start, when whoever approved is long gone; not where nobody can answer."""
    ingest = Ingest(given.eventlog)
    await given.eventlog.approvals.save("default", "p", "bash", ["git *"])
    given.commit(OTHER, *PARKED)
    given.raw(OTHER, b"not a commit")
    async with projection.running():
        await projection.until(projection.arrived)
    given.commit(AT, *PARKED)
    task = partial(
        ask_recheck.answering, projection.dsn, given.eventlog, interval_s=0.02, expire_s=None
    )
    async with projection.running(), projection.keeping(task):
        await projection.until(lambda: bool(ingest.asked))
        await asyncio.sleep(0.1)

    assert ingest.asked == [("permission.recheck", "per_c1")]
