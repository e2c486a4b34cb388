"""A session counts for the principal that created it, live and after a rebuild. FINDINGS B11."""

from typing import TYPE_CHECKING, Any

import pytest

from fairlead_eventlog.memory.outputs import MemoryOutputs
from fairlead_projector import database
from fairlead_projector.migrations import load_migrations, lock_migrations
from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.principal_totals import PrincipalChange
from fairlead_projector.projection.rebuild import digest, rebuild
from fairlead_projector.projection.rows import ProjectedSession
from fairlead_projector.tenant_usage import TenantTotalsStore
from fairlead_schema.commands.quota import QuotaLimits, TenantTotals
from fairlead_schema.events import SessionEvent, SessionPurged
from fairlead_schema.identity.principal import PRINCIPAL_LENGTH_MAX
from fairlead_schema.subjects import Address
from services.projector.tests.projection.test_session_row import ADMITTED, CREATED, PROMOTED

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

AT = Address("default", "ses_1")
NEIGHBOUR = Address("default", "ses_2")
FOREIGN = Address("acme", "ses_1")
ANN, BOB = "key:ann", "key:bob"


class Batches:
    """Folds batches over the same sessions, each a list of events with their principals."""

    def __init__(self, log_builder: "LogBuilder") -> None:
        self._log = log_builder
        self._sessions: dict[Address, ProjectedSession] = {}

    def fold(self, *commits: tuple[SessionEvent, str | None]) -> list[PrincipalChange]:
        payloads = [self._log.payload(AT, event, by=by) for event, by in commits]
        return self.fold_raw(*payloads)

    def fold_raw(self, *payloads: bytes) -> list[PrincipalChange]:
        batch = [log_entries.decode_entry(self._log.raw(AT, payload)) for payload in payloads]
        return row_changes.fold_batch(self._sessions, batch).principals


def test_a_session_counts_for_its_creator_whoever_writes_to_it(log_builder: "LogBuilder") -> None:
    """B11: the bytes and prompts of a session are its creator's, also those that others add."""
    batches = Batches(log_builder)

    (created,) = batches.fold((CREATED, ANN))
    (prompted,) = batches.fold((ADMITTED, BOB))
    (promoted,) = batches.fold((PROMOTED, None))

    changes = (created, prompted, promoted)
    assert {(item.tenant, item.principal) for item in changes} == {("default", ANN)}
    assert [(item.sessions, item.pending) for item in changes] == [(1, 0), (0, 1), (0, -1)]
    assert all(item.log_bytes > 0 for item in changes)


def test_a_purge_takes_back_all_that_the_session_added(log_builder: "LogBuilder") -> None:
    """B11: the last event names who purged, so nothing of it may count for anybody."""
    batches = Batches(log_builder)
    (added,) = batches.fold((CREATED, ANN), (ADMITTED, ANN))

    (taken,) = batches.fold((SessionPurged(), BOB))
    at_once = Batches(type(log_builder)()).fold((CREATED, ANN), (SessionPurged(), BOB))

    assert taken == PrincipalChange("default", ANN, -1, -added.log_bytes, -1)
    assert at_once == []


def test_a_broken_session_stays_counted_and_adds_no_more(log_builder: "LogBuilder") -> None:
    batches = Batches(log_builder)
    batches.fold((CREATED, ANN))

    (broken,) = batches.fold_raw(b"not a commit")

    assert (broken.principal, broken.sessions, broken.log_bytes) == (ANN, 0, 12)
    assert batches.fold((ADMITTED, ANN)) == []


@pytest.mark.parametrize("by", [None, "", "user:" + "x" * PRINCIPAL_LENGTH_MAX])
def test_a_session_of_nobody_counts_for_nobody(log_builder: "LogBuilder", by: str | None) -> None:
    """A name that no index can hold must not stop its shard."""
    assert Batches(log_builder).fold((CREATED, by)) == []


async def load(projection: "Projection", principal: str, tenant: str = "default") -> TenantTotals:
    store = TenantTotalsStore(
        projection.dsn, MemoryOutputs(), principal_limits=lambda _tenant: QuotaLimits(sessions=5)
    )
    try:
        return await store.load_principal(tenant, principal)
    finally:
        await store.close()


@pytest.mark.integration
async def test_a_rebuild_counts_the_same_for_every_principal(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """B11: also after a purge, whose log no longer says who created the session."""
    last = Address("default", "ses_3")
    async with projection.run():
        for at, by in ((AT, ANN), (NEIGHBOUR, ANN), (FOREIGN, ANN), (last, BOB)):
            await log_builder.append(at, CREATED, ADMITTED, by=by)
        await projection.wait_until(projection.is_caught_up)
        before = await load(projection, ANN)
        for at in (AT, last):
            await log_builder.append(at, SessionPurged(cost=0.1, tokens=3), by="key:operator")
        await projection.wait_until(projection.is_caught_up)
    ann, bob = await load(projection, ANN), await load(projection, BOB)
    rows, rows_digest = principal_rows(projection), await digest(projection.dsn)

    await rebuild(projection.dsn, log_builder.eventlog, progress=lambda _progress: None)

    assert (before.sessions, before.pending) == (2, 2)
    assert (ann.principal, ann.sessions, ann.pending) == (ANN, 1, 1)
    assert 0 < ann.log_bytes < before.log_bytes
    assert ann.allowed == QuotaLimits(sessions=5)
    assert (bob.sessions, bob.log_bytes, bob.pending) == (0, 0, 0)
    assert [(row["tenant"], row["principal"]) for row in rows] == [("acme", ANN), ("default", ANN)]
    assert principal_rows(projection) == rows
    assert await digest(projection.dsn) == rows_digest


def principal_rows(projection: "Projection") -> list[dict[str, Any]]:
    return projection.rows("SELECT * FROM projection.principal_total ORDER BY tenant, principal")


@pytest.mark.integration
async def test_sessions_of_an_earlier_release_count_for_nobody_until_a_rebuild(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """B11: the rows of an earlier release do not name a creator, and the log does."""
    log_builder.raw(AT, log_builder.payload(AT, CREATED, by=ANN))
    async with await database.connect(projection.dsn) as connection, connection.transaction():
        await lock_migrations(connection)
        for migration in load_migrations()[:5]:
            await connection.execute(migration.statement)
        await connection.execute(
            "INSERT INTO projection.session (tenant, session_id, seq, position, project_id, title,"
            " directory, created_at, updated_at, tokens) VALUES"
            " ('default', 'ses_1', 1, 1, 'p', 't', '/w', 1, 1, '{}')"
        )
        await connection.execute(load_migrations()[5].statement)
    upgraded = await load(projection, ANN)

    await rebuild(projection.dsn, log_builder.eventlog, progress=lambda _progress: None)

    assert upgraded.sessions == 0
    assert (await load(projection, ANN)).sessions == 1
