"""The projector rechecks pending asks after an approval and expires old ones."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest
from pydantic_core import from_json

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_projector import ask_recheck
from fairlead_projector.ask_recheck import (
    CheckedRevisions,
    WaitingAsk,
    expire_asks,
    may_be_approved,
    recheck_permissions,
)
from fairlead_schema import subjects
from fairlead_schema.ids import TenantId
from fairlead_schema.permission import (
    SavedPermission,
)
from fairlead_schema.subjects import Address
from fairlead_service import ids
from services.projector.tests.projection.test_asks import PARKED
from services.projector.tests.projection.test_session_row import (
    AT,
    OTHER,
)

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection


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


def test_each_request_is_held_against_each_revision_once() -> None:
    """K-17: a new request is checked against older approvals too."""
    revisions, first, second = CheckedRevisions(), waiting_ask("per_1"), waiting_ask("per_2")
    question = second._replace(kind="question")

    assert revisions.due([first, question], 1) == [first]
    revisions.note(first, 1)
    assert revisions.due([first, second], 1) == [second]
    assert revisions.due([first], 2) == [first]
    assert revisions.due([], 2) == []
    assert revisions.due([first], 1) == [first]


class FakeIngest:
    """Answers commands and records them."""

    def __init__(self, eventlog: EventLog, tenant: TenantId = "default") -> None:
        assert isinstance(eventlog.requests, MemoryRequests)
        self.commands: list[tuple[str, str]] = []
        self._answerers = eventlog.requests.answerers
        for verb in ("permission.recheck", "ask.expire"):
            self._answerers[subjects.api(tenant, verb)] = partial(self._answer, verb)

    async def _answer(self, verb: str, body: bytes) -> bytes:
        self.commands.append((verb, from_json(body)["requestID"]))
        return b"{}"

    def leave(self) -> None:
        self._answerers.clear()


async def test_what_was_approved_meanwhile_is_handed_to_ingest(log_builder: "LogBuilder") -> None:
    """K-17: the projector repeats the command until ingest answers."""
    eventlog, revisions = log_builder.eventlog, CheckedRevisions()
    await eventlog.approvals.save("default", "p", "vcs", ["git *"])
    pending = [waiting_ask("per_1"), waiting_ask("per_2", action="edit")]

    await recheck_permissions(eventlog, pending, revisions)
    ingest = FakeIngest(eventlog)
    await recheck_permissions(eventlog, pending, revisions)
    await recheck_permissions(eventlog, pending, revisions)

    assert ingest.commands == [("permission.recheck", "per_1")]


async def test_only_what_is_older_than_configured_is_handed_over_as_expired(
    log_builder: "LogBuilder",
) -> None:
    """K-19: asks never expire by default."""
    ingest = FakeIngest(log_builder.eventlog)
    fresh = waiting_ask("per_2")._replace(asked_at=ids.now_ms())

    await expire_asks(log_builder.eventlog, [waiting_ask("per_1"), fresh], None)
    await expire_asks(log_builder.eventlog, [waiting_ask("per_1"), fresh], 3600)

    assert ingest.commands == [("ask.expire", "per_1")]


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
