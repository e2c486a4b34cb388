"""Shows when the last backups began, so that an alert misses one that failed or never came."""

import asyncio
from collections.abc import Callable
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_projector import metrics

INTERVAL_S: Final = 30.0


async def watch_backups(
    eventlog: EventLog,
    *,
    interval_s: float = INTERVAL_S,
    on_healthy: Callable[[], None] = lambda: None,
) -> None:
    """Read the notes of `fairlead backup` for ever."""
    while True:
        last = await eventlog.backups.read()
        metrics.BACKUP_COMPLETE.set(0.0 if last.complete is None else last.complete.began)
        metrics.BACKUP_FAILED.set(0.0 if last.failed is None else last.failed.began)
        on_healthy()
        await asyncio.sleep(interval_s)
