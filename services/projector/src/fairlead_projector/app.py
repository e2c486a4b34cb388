"""Builds the projector: its tasks, its health and its answers to usage requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.local_requests import LocalRequests
from fairlead_eventlog.quotas.stored_bytes import JoinedStores
from fairlead_projector.alarms.backups import watch_backups
from fairlead_projector.alarms.full_streams import watch_streams
from fairlead_projector.alarms.waiting_work import watch_queues
from fairlead_projector.ask_recheck import recheck_asks
from fairlead_projector.feed.publisher import publish_shard
from fairlead_projector.migration_gate import MigrationGate
from fairlead_projector.projection.group.shard_group import ShardGroup
from fairlead_projector.projection.group.writer import BatchLimits
from fairlead_projector.projection.shard import ReadOptions, project_shard, watch_shards
from fairlead_projector.settings import ProjectorSettings
from fairlead_projector.shard_balance import ShardShare
from fairlead_projector.shard_reader import Companions
from fairlead_projector.sweep import sweep
from fairlead_projector.task_supervisor import Complaints, Task, keep_running
from fairlead_projector.tenant_usage import serve_usage
from fairlead_schema.subjects import SHARDS
from fairlead_service.health import Health
from fairlead_service.process import application
from fairlead_service.supervise import cancel_and_wait


def build(settings: ProjectorSettings, local: LocalRequests | None = None) -> Starlette:
    """The ASGI application. It connects when it starts."""
    health, complaints = Health(), Complaints()
    gate = MigrationGate(settings.postgres_dsn)
    postgres = complaints.probe("postgres")
    health.depend("postgres", lambda: gate.complaint() or postgres())
    health.depend("projector", complaints.probe("projector"))

    @asynccontextmanager
    async def work() -> AsyncIterator[None]:
        timeout_s = settings.request_timeout_s
        async with connect(
            settings.nats, name="projector", timeout_s=timeout_s, local=local
        ) as eventlog:
            nats = complaints.probe("nats")
            health.depend("nats", lambda: eventlog.complaint() or nats())
            async with (
                run_tasks(settings, eventlog, complaints, gate),
                serve_usage(
                    settings,
                    JoinedStores(eventlog.outputs, eventlog.attachments),
                    eventlog.operations,
                    local,
                ),
            ):
                yield

    return application("projector", work, health)


@asynccontextmanager
async def run_tasks(
    settings: ProjectorSettings, eventlog: EventLog, complaints: Complaints, gate: MigrationGate
) -> AsyncIterator[None]:
    """Run all tasks of a projector, and restart failed ones, until the block ends.

    The feed needs no Postgres. All other tasks wait until the gate is open.
    """
    limits = BatchLimits(settings.batch_commits_max, settings.batch_bytes_max)
    async with ShardGroup(settings.postgres_dsn, eventlog, limits, cache=settings.cache) as group:
        companions = Companions()
        table_tasks = _table_tasks(settings, eventlog, group, companions)
        held = {name: gate.hold(task) for name, task in table_tasks.items()}
        tasks = [
            asyncio.create_task(keep_running(name, task, complaints), name=name)
            for name, task in {**held, **_feed_tasks(settings, eventlog, companions)}.items()
        ]
        tasks.append(asyncio.create_task(gate.open(), name="migrations"))
        try:
            yield
        finally:
            await cancel_and_wait(*tasks)


def _table_tasks(
    settings: ProjectorSettings, eventlog: EventLog, group: ShardGroup, companions: Companions
) -> dict[str, Task]:
    dsn, share = settings.postgres_dsn, ShardShare()
    tasks: dict[str, Task] = {
        "watch": partial(watch_shards, dsn, eventlog, share),
        "streams": partial(watch_streams, eventlog),
        "queues": partial(watch_queues, eventlog),
        "backups": partial(watch_backups, eventlog),
        "sweep": partial(
            sweep,
            dsn,
            eventlog,
            interval_s=settings.sweep_interval_s,
            age_s=settings.sweep_age_s,
            tenant_budgets=settings.tenant_budgets,
        ),
        "asks": partial(
            recheck_asks,
            dsn,
            eventlog,
            interval_s=settings.asks_interval_s,
            expire_s=settings.expire_s,
        ),
    }
    options = ReadOptions(
        settings.batch_commits_max, settings.batch_bytes_max, companions=companions
    )
    for shard in range(SHARDS):
        tasks[f"shard {shard}"] = partial(project_shard, shard, group, share, options=options)
    return tasks


def _feed_tasks(
    settings: ProjectorSettings, eventlog: EventLog, companions: Companions
) -> dict[str, Task]:
    timings, bytes_max = settings.feed_timings, settings.batch_bytes_max
    return {
        f"feed {shard}": partial(
            publish_shard,
            shard,
            eventlog,
            timings=timings,
            bytes_max=bytes_max,
            companions=companions,
        )
        for shard in range(SHARDS)
    }
