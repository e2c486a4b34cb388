"""Several projectors share the shards, run migrations once, and sweep."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.memory.wakes import MemoryWakes
from fairlead_projector import database
from fairlead_projector.migrations import load_migrations, migrate
from fairlead_projector.projection.shard import ReadOptions
from fairlead_projector.shard_balance import ShardShare
from fairlead_projector.sweep import sweep
from fairlead_schema import subjects
from fairlead_schema.events import PromptAdmitted, SessionCreated
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import SHARDS, Address

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

pytestmark = pytest.mark.integration

AT = Address("default", "ses_1")
NEIGHBOUR = Address("default", "ses_2")
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
ADMITTED = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="hi"), delivery="queue")


async def test_two_projectors_share_the_shards(projection: "Projection") -> None:
    run = partial(
        projection.run, options=ReadOptions(500, lock_retry_s=0.02), watch_interval_s=0.02
    )
    first, second = ShardShare(), ShardShare()
    sessions = [Address("default", f"ses_{n}") for n in range(64)]
    async with run(share=first):
        await projection.wait_until(lambda: len(first.shards) == SHARDS)
        async with run(share=second):
            await projection.wait_until(lambda: first.limit == second.limit == SHARDS // 2)
            for at in sessions:
                await projection.log_builder.append(at, CREATED)

            await projection.wait_until(
                lambda: len(first.shards) == len(second.shards) == SHARDS // 2
            )
            await projection.wait_until(projection.is_caught_up)
        await projection.wait_until(lambda: len(first.shards) == SHARDS)

    assert len(projection.rows("SELECT * FROM read.session")) == len(sessions)


async def test_several_processes_migrate_at_once(projection: "Projection") -> None:
    async def migrate_database() -> None:
        async with await database.connect(projection.dsn) as connection:
            await migrate(connection)

    await asyncio.gather(*(migrate_database() for _ in range(5)))

    rows = projection.rows("SELECT * FROM public.fairlead_migration")
    assert len(rows) == len(load_migrations())


async def test_the_sweep_wakes_a_session_that_stands_still(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    log_builder.commit(AT, CREATED, ADMITTED)
    log_builder.commit(NEIGHBOUR, CREATED)
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
    job = partial(sweep, projection.dsn, log_builder.eventlog, interval_s=0.05, age_s=0.1)
    async with projection.run_tasks(job):
        wakes = log_builder.eventlog.wakes
        assert isinstance(wakes, MemoryWakes)
        await projection.wait_until(
            lambda: [job.subject for job in wakes.queue.messages] == [subjects.wake(AT)]
        )
