"""A projector that starts before its migrations waits quietly, says so once, and then works."""

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest
from psycopg.conninfo import make_conninfo

from fairlead_projector import database
from fairlead_projector.app import run_tasks
from fairlead_projector.migration_gate import MigrationGate
from fairlead_projector.migrations import migrate
from fairlead_projector.roles.creation import create_roles
from fairlead_projector.roles.names import MIGRATOR, PROJECTOR
from fairlead_projector.settings import ProjectorSettings
from fairlead_projector.task_supervisor import Complaints
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_testing.postgres import Server
from services.projector.tests.projection.test_shard import AT, CREATED
from services.projector.tests.test_roles import LOGINS, drop_roles

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

pytestmark = pytest.mark.integration


def settings(dsn: str) -> ProjectorSettings:
    return ProjectorSettings(
        nats=NatsAddress("nats://127.0.0.1:4222"),
        request_timeout_s=1.0,
        postgres_dsn=dsn,
        host="127.0.0.1",
        port=0,
        batch_commits_max=500,
        sweep_interval_s=0.05,
        sweep_age_s=3.0,
        asks_interval_s=0.05,
    )


async def test_a_projector_without_tables_says_once_what_it_waits_for(
    log_builder: "LogBuilder", projection: "Projection", caplog: pytest.LogCaptureFixture
) -> None:
    """Its tasks logged missing tables again and again. Then it was ready, and projected nothing."""
    caplog.set_level(logging.WARNING)
    log_builder.commit(AT, CREATED)
    admin_dsn = projection.dsn
    async with await database.connect(admin_dsn) as admin:
        await create_roles(admin, LOGINS)
    try:
        projection.dsn = make_conninfo(admin_dsn, user=PROJECTOR)
        complaints, gate = Complaints(), MigrationGate(projection.dsn, poll_s=0.05)
        async with run_tasks(settings(projection.dsn), log_builder.eventlog, complaints, gate):
            await projection.wait_until(lambda: bool(caplog.records))
            await asyncio.sleep(1.0)
            assert "fairlead migrate" in (gate.complaint() or "")
            assert [record.message for record in caplog.records] == [
                "projector waits for its tables: it starts with them"
            ]

            async with await database.connect(make_conninfo(admin_dsn, user=MIGRATOR)) as owner:
                await migrate(owner)
            projection.dsn = admin_dsn
            await projection.wait_until(projection.is_caught_up)
            assert gate.complaint() is None
            assert complaints.probe("postgres")() is None
    finally:
        drop_roles(admin_dsn)


async def test_a_projector_that_starts_before_postgres_says_that_too(
    dsn: str, postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    gate = MigrationGate(dsn, poll_s=0.05)
    await asyncio.to_thread(postgres.stop)
    opening = asyncio.create_task(gate.open())
    try:
        async with asyncio.timeout(20):
            while "start Postgres, or correct" not in (gate.complaint() or ""):
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.5)
    finally:
        await asyncio.to_thread(postgres.start)
    async with asyncio.timeout(30):
        await opening

    assert gate.complaint() is None
    reasons = [getattr(record, "reason", "") for record in caplog.records]
    assert 1 <= len([reason for reason in reasons if "start Postgres, or correct" in reason]) <= 2
