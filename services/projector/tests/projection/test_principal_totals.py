"""A session counts for the principal that created it, live and after a rebuild. FINDINGS B11."""

from collections.abc import AsyncIterator
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
from fairlead_schema.subjects import Address, shard
from services.projector.tests.projection.test_session_row import (
    ADMITTED,
    CREATED,
    PROMOTED,
    call_events,
    release,
    settlement,
)
from services.projector.tests.projection.test_tenant_totals import TURN, start

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

    assert taken == PrincipalChange(
        "default", ANN, shard(AT.session_id), -1, -added.log_bytes, -1, 0, 0
    )
    assert at_once == []


def test_turns_and_calls_count_for_the_creator_until_they_end(log_builder: "LogBuilder") -> None:
    """B11: who prompted does not matter, and a service that runs the work names nobody."""
    batches = Batches(log_builder)
    calls = (*call_events("c1"), *call_events("c2"), start("c1"), start("c2"))
    batches.fold((CREATED, ANN), (ADMITTED, BOB))

    (begun,) = batches.fold(*((event, None) for event in (*TURN, *calls)))
    (settled,) = batches.fold((settlement("c2"), None))
    (parked,) = batches.fold((release("parked"), None))
    (purged,) = batches.fold((SessionPurged(), BOB))

    changes = (begun, settled, parked, purged)
    assert {item.principal for item in changes} == {ANN}
    assert [(item.turns, item.calls) for item in changes] == [(1, 2), (0, -1), (-1, 0), (0, -1)]


def test_a_broken_session_stays_counted_and_adds_no_more(log_builder: "LogBuilder") -> None:
    batches = Batches(log_builder)
    batches.fold((CREATED, ANN))

    (broken,) = batches.fold_raw(b"not a commit")

    assert (broken.principal, broken.sessions, broken.log_bytes) == (ANN, 0, 12)
    assert batches.fold((ADMITTED, ANN)) == []


def test_a_session_that_breaks_in_mid_turn_keeps_no_turn_and_no_call(
    log_builder: "LogBuilder",
) -> None:
    """B11: nobody can end its work, so with a quota of one its principal would wait for ever."""
    batches = Batches(log_builder)
    calls = (*call_events("c1"), start("c1"))
    batches.fold(*((event, ANN) for event in (CREATED, ADMITTED, *TURN, *calls)))

    (broken,) = batches.fold_raw(b"not a commit")
    (purged,) = batches.fold((SessionPurged(), BOB))

    assert (broken.sessions, broken.turns, broken.calls) == (0, -1, -1)
    assert (purged.sessions, purged.turns, purged.calls) == (-1, 0, 0)


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
        for migration in load_migrations()[5:]:
            await connection.execute(migration.in_transaction)
    upgraded = await load(projection, ANN)

    await rebuild(projection.dsn, log_builder.eventlog, progress=lambda _progress: None)

    assert upgraded.sessions == 0
    assert (await load(projection, ANN)).sessions == 1


@pytest.mark.integration
async def test_turns_and_calls_of_an_earlier_release_end_in_the_totals(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """B11: what runs during the upgrade counts, and its end leaves nothing behind."""
    async with projection.run():
        calls = (*call_events("c1"), start("c1"))
        await log_builder.append(AT, CREATED, ADMITTED, *TURN, *calls, by=ANN)
        await projection.wait_until(projection.is_caught_up)
    async with await database.connect(projection.dsn) as connection, connection.transaction():
        await connection.execute("DROP VIEW read.principal_total")
        await connection.execute(
            "ALTER TABLE projection.principal_total DROP COLUMN turns, DROP COLUMN calls"
        )
        await connection.execute(load_migrations()[6].statement)
    upgraded = await load(projection, ANN)

    async with projection.run():
        await log_builder.append(AT, settlement("c1"), release("parked"))
        await projection.wait_until(projection.is_caught_up)
        ended = await load(projection, ANN)
        await log_builder.append(AT, SessionPurged())
        await projection.wait_until(projection.is_caught_up)

    assert (upgraded.sessions, upgraded.turns, upgraded.calls) == (1, 1, 1)
    assert (ended.sessions, ended.turns, ended.calls) == (1, 0, 0)
    purged = await load(projection, ANN)
    assert (purged.sessions, purged.turns, purged.calls) == (0, 0, 0)


@pytest.mark.integration
async def test_work_of_sessions_that_an_earlier_release_found_broken_is_taken_back(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """B11: earlier totals count it, for the principal and for the tenant."""
    async with projection.run():
        calls = (*call_events("c1"), start("c1"))
        await log_builder.append(AT, CREATED, ADMITTED, *TURN, *calls, by=ANN)
        await projection.wait_until(projection.is_caught_up)
    async with await database.connect(projection.dsn) as connection, connection.transaction():
        await connection.execute("UPDATE projection.session SET broken = 'unreadable'")
        (migration,) = (one for one in load_migrations() if one.number == 12)
        await connection.execute(migration.statement)

    totals = await load(projection, ANN)
    async with await database.connect(projection.dsn) as connection:
        cursor = await connection.execute("SELECT turns, calls FROM read.tenant_total")
        whole = await cursor.fetchone()

    assert (totals.sessions, totals.turns, totals.calls) == (1, 0, 0)
    assert whole == (0, 0)


@pytest.mark.integration
async def test_stored_outputs_count_for_the_principal_that_they_name(
    projection: "Projection",
) -> None:
    """B11: an output of a release without principals counts for the tenant alone."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * 10

    outputs = MemoryOutputs()
    for number, principal in enumerate((ANN, ANN, BOB, None)):
        await outputs.put(AT, f"out_{number}", pieces(), mime="text/plain", principal=principal)
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
    store = TenantTotalsStore(projection.dsn, outputs)
    try:
        found = [
            (await store.load("default")).output_bytes,
            (await store.load_principal("default", ANN)).output_bytes,
            (await store.load_principal("default", "key:stranger")).output_bytes,
        ]
    finally:
        await store.close()

    assert found == [40, 20, 0]
