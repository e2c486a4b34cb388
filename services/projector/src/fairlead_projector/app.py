"""The projector as a process: its tasks, its health, its metrics."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import connect
from fairlead_projector import ask_recheck as asks
from fairlead_projector.feed import feed
from fairlead_projector.projection.shard import Reading, project, watch
from fairlead_projector.settings import ProjectorSettings
from fairlead_projector.shard_balance import Share
from fairlead_projector.supervise import Complaints, Task, keep
from fairlead_projector.sweep import sweep
from fairlead_projector.tenant_usage import serving_usage
from fairlead_schema.subjects import SHARDS
from fairlead_service.health import Health
from fairlead_service.process import application
from fairlead_service.supervise import cancel_and_wait


def build(settings: ProjectorSettings) -> Starlette:
    """The application; nothing connects before it is served."""
    health, complaints = Health(), Complaints()
    health.depend("postgres", complaints.probe("postgres"))
    health.depend("projector", complaints.probe("projector"))

    @asynccontextmanager
    async def work() -> AsyncIterator[None]:
        timeout_s = settings.request_timeout_s
        async with connect(settings.nats_url, name="projector", timeout_s=timeout_s) as eventlog:
            nats = complaints.probe("nats")
            health.depend("nats", lambda: eventlog.complaint() or nats())
            async with (
                running(settings, eventlog, complaints),
                serving_usage(settings.nats_url, settings.postgres_dsn),
            ):
                yield

    return application(work, health)


@asynccontextmanager
async def running(
    settings: ProjectorSettings, eventlog: EventLog, complaints: Complaints
) -> AsyncIterator[None]:
    """All tasks of a projector, kept alive while the block runs."""
    tasks = [
        asyncio.create_task(keep(name, task, complaints), name=name)
        for name, task in _tasks(settings, eventlog).items()
    ]
    try:
        yield
    finally:
        await cancel_and_wait(*tasks)


def _tasks(settings: ProjectorSettings, eventlog: EventLog) -> dict[str, Task]:
    dsn, share = settings.postgres_dsn, Share()
    tasks: dict[str, Task] = {
        "watch": partial(watch, dsn, eventlog, share),
        "sweep": partial(
            sweep,
            dsn,
            eventlog,
            interval_s=settings.sweep_interval_s,
            age_s=settings.sweep_age_s,
            allowed=settings.allowed,
        ),
        "asks": partial(
            asks.answering,
            dsn,
            eventlog,
            interval_s=settings.asks_interval_s,
            expire_s=settings.expire_s,
        ),
    }
    for shard in range(SHARDS):
        reading = Reading(settings.batch_commits_max)
        tasks[f"shard {shard}"] = partial(project, shard, dsn, eventlog, share, reading=reading)
        tasks[f"feed {shard}"] = partial(feed, shard, eventlog)
    return tasks
