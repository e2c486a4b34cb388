"""Backups at an interval, in a process that stays. The directory says when the next one is due."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from fairlead_cli.backup.dated import find_newest
from fairlead_cli.errors import CommandError
from fairlead_eventlog.errors import LogError

LOOK_S: Final = 60.0
RETRY_S: Final = 600.0


def seconds_until_due(newest: datetime | None, every: timedelta, now: datetime) -> float:
    """How long to wait for the next backup. Without an earlier one, or with one of the future, it is due."""
    if newest is None or newest > now:
        return 0.0
    return max(0.0, (newest + every - now).total_seconds())


async def repeat_backup(
    attempt: Callable[[], Awaitable[None]],
    parent: Path,
    every: timedelta,
    on_failure: Callable[[str], None],
) -> None:
    """Back up for ever. A failed backup is told and tried again after some minutes."""
    while True:
        try:
            # A restart of this process does not make a backup that is not due.
            wait_s = seconds_until_due(find_newest(parent), every, datetime.now(UTC))
            if not wait_s:
                await attempt()
            await asyncio.sleep(min(wait_s, LOOK_S))
        except (CommandError, LogError) as error:
            on_failure(str(error))
            await asyncio.sleep(min(RETRY_S, every.total_seconds()))
