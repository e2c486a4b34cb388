"""The totals of a tenant run in the projection's transaction. FINDINGS A12, B11."""

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.memory.outputs import MemoryOutputs
from fairlead_projector import database
from fairlead_projector.migrations import load_migrations, lock_migrations, migrate
from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.rebuild import digest, rebuild
from fairlead_projector.projection.tenant_totals import (
    NOTHING,
    SessionShare,
    TenantChange,
    share_after_purge,
    tenant_changes,
)
from fairlead_projector.tenant_usage import TenantTotalsStore
from fairlead_schema.catalog import Tokens
from fairlead_schema.commands.quota import QuotaLimits, TenantTotals
from fairlead_schema.events import SessionEvent, SessionPurged, StepEnded, ToolStarted
from fairlead_schema.subjects import Address, shard
from services.projector.tests.projection.test_rebuild import EXECUTION_LOG, apply_all
from services.projector.tests.projection.test_session_row import (
    ADMITTED,
    CLAIMED,
    CREATED,
    DISPATCHED,
    PROMOTED,
    STARTED,
    call_events,
    release,
    settlement,
)

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

AT = Address("default", "ses_1")
NEIGHBOUR = Address("default", "ses_2")
FOREIGN = Address("acme", "ses_1")
TURN = (CLAIMED, PROMOTED, DISPATCHED, STARTED)


def start(call_id: str) -> ToolStarted:
    return ToolStarted(assistant_message_id="msg_a", call_id=call_id, worker="wkr_1", generation=1)


def spend(cost: float, tokens: int) -> StepEnded:
    return StepEnded(
        assistant_message_id="msg_a", finish="stop", cost=cost, tokens=Tokens(input=tokens)
    )


def fold(log_builder: "LogBuilder", *events: SessionEvent) -> dict[str, int]:
    """The change of the tenant by one commit for each event, as one batch."""
    entries = [log_builder.commit(AT, event) for event in events]
    batch = [log_entries.decode_entry(entry) for entry in entries]
    (change,) = row_changes.fold_batch({}, batch).tenants
    assert change.log_bytes == sum(len(entry.payload) for entry in entries)
    return {
        "sessions": change.sessions,
        "turns": change.turns,
        "calls": change.calls,
        "pending": change.pending,
    }


def test_a_session_counts_with_its_owner_its_started_calls_and_its_pending_prompts(
    log_builder: "LogBuilder",
) -> None:
    """B11: a call counts from its start to its settlement, however often a worker starts it."""
    calls = (*call_events("c1"), *call_events("c2"))

    assert fold(log_builder, CREATED, ADMITTED) == counted(pending=1)
    log_builder = type(log_builder)()
    assert fold(log_builder, CREATED, ADMITTED, *TURN, *calls) == counted(turns=1)
    log_builder = type(log_builder)()
    started = (start("c1"), start("c1"), start("c2"))
    assert fold(log_builder, CREATED, ADMITTED, *TURN, *calls, *started) == counted(
        turns=1, calls=2
    )
    log_builder = type(log_builder)()
    ended = (settlement("c2"), release("parked"))
    assert fold(log_builder, CREATED, ADMITTED, *TURN, *calls, *started, *ended) == counted(calls=1)


def counted(*, turns: int = 0, calls: int = 0, pending: int = 0) -> dict[str, int]:
    return {"sessions": 1, "turns": turns, "calls": calls, "pending": pending}


def test_a_purge_keeps_cost_and_tokens_alone() -> None:
    """A12: a last event of an earlier release does not name them, so the row's count."""
    before = SessionShare(1, 500, 2, 1, 3, Decimal("0.25"), 40)

    named = share_after_purge(before, SessionPurged(cost=0.5, tokens=50), 99)
    unnamed = share_after_purge(before, SessionPurged(), 99)

    assert named == SessionShare(log_bytes=99, cost=Decimal("0.5"), tokens=50)
    assert unnamed == SessionShare(log_bytes=99, cost=Decimal("0.25"), tokens=40)
    assert tenant_changes({AT: before}, {AT: before}) == []
    assert tenant_changes({AT: NOTHING, FOREIGN: NOTHING}, {FOREIGN: unnamed}) == [
        TenantChange("acme", shard(AT.session_id), 0, 99, 0, 0, 0, Decimal("0.25"), 40)
    ]


def test_a_cost_that_is_no_number_never_reaches_the_totals() -> None:
    purged = share_after_purge(NOTHING, SessionPurged(cost=float("inf"), tokens=1), 0)

    assert purged == SessionShare(tokens=1)


async def load(projection: "Projection", tenant: str = "default") -> TenantTotals:
    store = TenantTotalsStore(projection.dsn, MemoryOutputs())
    try:
        return await store.load(tenant)
    finally:
        await store.close()


@pytest.mark.integration
async def test_deleting_sessions_does_not_refund_a_tenants_budget(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """A12: the attack. Cost and tokens stay after a purge, and after a rebuild from what is left."""
    for at in (AT, NEIGHBOUR, FOREIGN):
        await log_builder.append(at, CREATED, ADMITTED)
        await log_builder.append(at, *TURN)
        await log_builder.append(at, spend(0.1, 30), release("idle"))
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
        before = await load(projection)
        await log_builder.append(AT, SessionPurged(cost=0.1, tokens=30))
        await log_builder.append(FOREIGN, SessionPurged())
        await projection.wait_until(projection.is_caught_up)
        after, foreign = await load(projection), await load(projection, "acme")

    assert (before.cost, before.tokens, before.sessions) == (0.2, 60, 2)
    assert (after.cost, after.tokens, after.sessions) == (0.2, 60, 1)
    assert after.log_bytes < before.log_bytes
    assert (foreign.cost, foreign.tokens, foreign.sessions) == (0.1, 30, 0)
    await rebuild(projection.dsn, log_builder.eventlog, progress=lambda _progress: None)
    assert await load(projection) == after


@pytest.mark.integration
@pytest.mark.parametrize("size", [1, 3, 500])
async def test_totals_do_not_depend_on_how_the_log_was_cut(
    log_builder: "LogBuilder", projection: "Projection", size: int
) -> None:
    """A12: many small costs give one exact sum, in any order and in any batches."""
    for number in range(9):
        at = Address("default", f"ses_{number}")
        for event in (*EXECUTION_LOG, spend(0.1 * number, number)):
            log_builder.commit(at, event)
    await apply_all(log_builder, projection.dsn, size=size, cold=size == 3)
    async with projection.run():
        for number in (0, 3, 6):
            at = Address("default", f"ses_{number}")
            await log_builder.append(at, SessionPurged(cost=0.7, tokens=7))
        await projection.wait_until(projection.is_caught_up)
    totals, rows_digest = await load(projection), await digest(projection.dsn)

    await rebuild(projection.dsn, log_builder.eventlog, progress=lambda _progress: None)

    assert await load(projection) == totals
    assert await digest(projection.dsn) == rows_digest
    assert (totals.sessions, totals.turns) == (6, 0)


@pytest.mark.integration
async def test_an_upgraded_database_keeps_what_its_tenants_used(
    projection: "Projection",
) -> None:
    """A12: the migration counts the rows of an earlier release."""
    async with await database.connect(projection.dsn) as connection, connection.transaction():
        await lock_migrations(connection)
        for migration in load_migrations()[:4]:
            await connection.execute(migration.statement)
        await connection.execute(
            "INSERT INTO projection.session (tenant, session_id, seq, position, project_id, title,"
            " directory, created_at, updated_at, cost, pending, owner, tokens) VALUES"
            " ('default', 'ses_old', 3, 1, 'p', 't', '/w', 1, 1, 0.1, 2, 'run_1',"
            ' \'{"input": 3, "output": 4, "reasoning": 0, "cache": {"read": 0, "write": 0}}\')'
        )
        await connection.execute(
            "INSERT INTO projection.session_event VALUES"
            " ('default', 'ses_old', 1, 'evt_1', 'session.created', 1, 1, '{\"title\": \"t\"}')"
        )
        await connection.execute(load_migrations()[4].statement)
    totals = await load(projection)

    assert (totals.cost, totals.tokens, totals.sessions) == (0.1, 7, 1)
    assert (totals.turns, totals.pending, totals.calls) == (1, 2, 0)
    assert totals.log_bytes == len('{"title": "t"}')


@pytest.mark.integration
async def test_the_store_of_totals_outlives_its_connection(projection: "Projection") -> None:
    """Postgres may restart: the next question opens a new connection."""
    async with await database.connect(projection.dsn) as connection:
        await migrate(connection)
    store = TenantTotalsStore(projection.dsn, MemoryOutputs())
    try:
        nothing = TenantTotals(allowed=QuotaLimits())
        assert await store.load("default") == nothing
        projection.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'fairlead-projector' AND pid <> pg_backend_pid()"
        )
        answers = await asyncio.gather(*(store.load("default") for _ in range(3)))
        assert answers == [nothing] * 3
    finally:
        await store.close()


@pytest.mark.integration
async def test_all_questions_for_totals_share_one_connection(projection: "Projection") -> None:
    """Budgets of many runners opened a connection for each question of each second."""
    async with await database.connect(projection.dsn) as connection:
        await migrate(connection)
    store = TenantTotalsStore(projection.dsn, MemoryOutputs())
    try:
        await asyncio.gather(*(store.load(f"tenant_{number}") for number in range(50)))
        connections = projection.rows(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fairlead-projector'"
            " AND datname = current_database()"
        )
    finally:
        await store.close()

    assert connections == [{"count": 1}]
