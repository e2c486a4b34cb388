"""The projector rechecks pending asks after an approval and expires old ones."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, cast

import pytest
from pydantic_core import from_json

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_projector import ask_recheck, database
from fairlead_projector.ask_recheck import (
    AskExpiry,
    AskTries,
    PermissionRecheck,
    WaitingAsk,
    may_be_approved,
)
from fairlead_projector.database import Connection
from fairlead_projector.migrations import migrate
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.errors import (
    InternalFailure,
    PermissionNotFound,
    Refused,
    ServiceUnavailable,
)
from fairlead_schema.ids import TenantId
from fairlead_schema.permission import (
    SavedPermission,
)
from fairlead_schema.subjects import Address
from services.projector.tests.projection.test_asks import PARKED
from services.projector.tests.projection.test_session_row import (
    AT,
    OTHER,
)

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection


UNUSED = cast("Connection", None)
"""No rows are read: the test hands over the asks itself."""


def waiting_ask(request_id: str = "per_c1", *, action: str = "vcs", at: Address = AT) -> WaitingAsk:
    return WaitingAsk(at, request_id, "permission", "p", 1000, action, ("git push", "ls"))


def approvals(*resources: str) -> list[SavedPermission]:
    return [
        SavedPermission(id=f"psv_{resource}", project_id="p", action="vcs", resource=resource)
        for resource in resources
    ]


def test_only_what_an_approval_speaks_of_is_looked_at_again() -> None:
    """K-17: ingest decides whether the approval is enough."""
    assert may_be_approved(waiting_ask(), approvals("git *"))
    assert not may_be_approved(waiting_ask(), approvals("make"))
    assert not may_be_approved(waiting_ask(action="edit"), approvals("git *"))
    assert not may_be_approved(waiting_ask(), [])


class FakeIngest:
    """Answers commands and records them."""

    def __init__(self, eventlog: EventLog, tenant: TenantId = "default") -> None:
        assert isinstance(eventlog.requests, MemoryRequests)
        self.commands: list[tuple[str, str]] = []
        self.answers: list[bytes] = []
        """What it answers first, instead of a success."""
        self._answerers = eventlog.requests.answerers
        for verb in ("permission.recheck", "ask.expire"):
            self._answerers[subjects.api(tenant, verb)] = partial(self._answer, verb)

    async def _answer(self, verb: str, body: bytes) -> bytes:
        self.commands.append((verb, from_json(body)["requestID"]))
        return self.answers.pop(0) if self.answers else b"{}"

    def leave(self) -> None:
        self._answerers.clear()


def refuse(refusal: Refused) -> bytes:
    return CommandAnswer[None](error=refusal.body).model_dump_json(by_alias=True).encode()


async def test_what_was_approved_meanwhile_is_handed_to_ingest(
    log_builder: "LogBuilder", monkeypatch: pytest.MonkeyPatch
) -> None:
    """K-17: the projector repeats the command until ingest answers."""
    monkeypatch.setattr(ask_recheck, "RETRY_S", 0.0)
    eventlog = log_builder.eventlog
    await eventlog.approvals.save("default", "p", "vcs", ["git *"])
    pending = [waiting_ask("per_1"), waiting_ask("per_2", action="edit")]
    recheck = PermissionRecheck(UNUSED, eventlog)

    await recheck.check(pending)
    ingest = FakeIngest(eventlog)
    await recheck.check(pending)
    await recheck.check(pending)

    assert ingest.commands == [("permission.recheck", "per_1")]


@pytest.mark.parametrize(
    ("refusal", "commands"),
    [
        (ServiceUnavailable("The log is away", service="nats"), 2),
        (InternalFailure("a defect"), 2),
        (PermissionNotFound("per_1"), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Refused) else "",
)
async def test_only_a_decision_of_ingest_ends_the_tries(
    refusal: Refused,
    commands: int,
    log_builder: "LogBuilder",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A9: an answer that ingest was unavailable counted as a decision, and the ask waited for ever."""
    monkeypatch.setattr(ask_recheck, "RETRY_S", 0.0)
    eventlog, ingest = log_builder.eventlog, FakeIngest(log_builder.eventlog)
    await eventlog.approvals.save("default", "p", "vcs", ["git *"])
    recheck, expiry = PermissionRecheck(UNUSED, eventlog), AskExpiry(UNUSED, eventlog)
    ingest.answers = [refuse(refusal)]
    for _ in range(3):
        await recheck.check([waiting_ask("per_1")])
    ingest.answers = [refuse(refusal)]
    for _ in range(3):
        await expiry.expire([waiting_ask("per_2")])

    assert ingest.commands == [
        *[("permission.recheck", "per_1")] * commands,
        *[("ask.expire", "per_2")] * commands,
    ]


def test_an_ask_that_ingest_cannot_decide_is_tried_ever_less_often() -> None:
    tries, ask = AskTries(), waiting_ask()
    times: list[int] = []
    for now in range(300):
        if tries.is_due(ask, now=now):
            times.append(now)
            tries.note(ask, decided=False, now=now)

    assert times == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]


def test_the_memory_of_tries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_recheck, "REMEMBERED_MAX", 3)
    tries = AskTries()
    for number in range(5):
        tries.note(waiting_ask(f"per_{number}"), decided=True, now=0)

    assert [tries.is_due(waiting_ask(f"per_{n}"), now=1) for n in range(5)] == [
        *[True] * 2,
        *[False] * 3,
    ]


ASKS = """
    INSERT INTO projection.session (
           tenant, session_id, seq, position, project_id, title, directory, tokens, created_at,
           updated_at, asks, waiting)
    SELECT 'default', 'ses_' || n, 1, n, 'p', 't', '/w', '{}', n, n, 1, true
      FROM generate_series(1, %(count)s) AS n;
"""
REQUESTS = """
    INSERT INTO projection.session_ask (
           tenant, session_id, request_id, kind, seq, request, asked_at)
    SELECT 'default', 'ses_' || n, 'per_' || n, 'permission', 1,
           '{"action": "vcs", "resources": ["git push"]}', n
      FROM generate_series(1, %(count)s) AS n
"""


async def add_asks(connection: Connection, count: int) -> None:
    await migrate(connection)
    await connection.execute(ASKS, {"count": count})
    await connection.execute(REQUESTS, {"count": count})


@pytest.mark.integration
async def test_only_what_is_older_than_configured_is_handed_over_as_expired(
    log_builder: "LogBuilder", dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K-19, A15: asks that ingest refuses to expire do not hide younger ones."""
    monkeypatch.setattr(ask_recheck, "EXPIRE_ROWS", 4)
    ingest = FakeIngest(log_builder.eventlog)
    ingest.answers = [refuse(PermissionNotFound("per"))] * 4
    async with await database.connect(dsn) as connection:
        await add_asks(connection, 12)
        expiry = AskExpiry(connection, log_builder.eventlog)
        for _round in range(4):
            await expiry.look(before=10)

    assert ingest.commands == [("ask.expire", f"per_{n}") for n in range(1, 10)]


@pytest.mark.integration
async def test_a_new_approval_reaches_every_ask_within_a_lap(
    log_builder: "LogBuilder", dsn: str
) -> None:
    """K-17, A15: pages are bounded, and a new revision of the approvals begins a new lap."""
    ingest = FakeIngest(log_builder.eventlog)
    async with await database.connect(dsn) as connection:
        await add_asks(connection, 95)
        recheck = PermissionRecheck(connection, log_builder.eventlog, page_rows=4)
        for _round in range(4):
            await recheck.look()
        assert ingest.commands == []

        await log_builder.eventlog.approvals.save("default", "p", "vcs", ["git *"])
        for _round in range(5):
            await recheck.look()

    assert sorted(ingest.commands) == sorted(
        ("permission.recheck", f"per_{n}") for n in range(1, 96)
    )


@pytest.mark.integration
async def test_a_projector_looks_at_what_waits_by_itself(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """K-17: this holds after a restart too; a broken session is left out."""
    ingest = FakeIngest(log_builder.eventlog)
    await log_builder.eventlog.approvals.save("default", "p", "bash", ["git push"])
    log_builder.commit(OTHER, *PARKED)
    log_builder.raw(OTHER, b"not a commit")
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
    log_builder.commit(AT, *PARKED)
    task = partial(
        ask_recheck.recheck_asks,
        projection.dsn,
        log_builder.eventlog,
        interval_s=0.02,
        expire_s=None,
    )
    async with projection.run(), projection.run_tasks(task):
        await projection.wait_until(lambda: bool(ingest.commands))
        await asyncio.sleep(0.1)

    assert ingest.commands == [("permission.recheck", "per_c1")]
