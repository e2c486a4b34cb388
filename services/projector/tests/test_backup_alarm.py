"""The projector shows when the last backups began."""

import asyncio

from prometheus_client import REGISTRY

from fairlead_eventlog.backup.backup_register import BackupAttempt
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_projector.alarms.backups import watch_backups


async def test_the_times_of_the_last_backups_are_metrics() -> None:
    eventlog = memory_eventlog()
    await eventlog.backups.note(BackupAttempt(1_000.0))
    await eventlog.backups.note(BackupAttempt(2_000.0, "the disk is full"))
    healthy = asyncio.Event()

    task = asyncio.create_task(watch_backups(eventlog, on_healthy=healthy.set))
    async with asyncio.timeout(5):
        await healthy.wait()
    task.cancel()

    metrics = ("complete", "failed")
    times = [
        REGISTRY.get_sample_value(f"fairlead_backup_{name}_timestamp_seconds") for name in metrics
    ]
    assert times == [1_000.0, 2_000.0]
