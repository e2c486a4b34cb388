"""Removes what sessions left in the private directory: of purged sessions, and of old ones."""

import asyncio
import logging
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import START, SessionLog
from fairlead_schema.record import RecordError
from fairlead_tools.private_directory import PrivateDirectory
from fairlead_tools.spool import remove_stale_spools

log = logging.getLogger(__name__)

EVERY_S: Final = 600.0


async def keep_clean(private: PrivateDirectory, session_log: SessionLog) -> None:
    """Remove old files now and again, for ever."""
    while True:
        await remove_leftovers(private, session_log)
        await asyncio.sleep(EVERY_S)


async def remove_leftovers(private: PrivateDirectory, session_log: SessionLog) -> None:
    """Remove the files of dead workers, of purged sessions and of sessions that rest for long."""
    await asyncio.to_thread(remove_stale_spools, private.spools)
    await asyncio.to_thread(private.remove_old_sessions)
    for at in tuple(private.used):
        try:
            is_purged = await session_log.head(at) == START
        except (LogError, RecordError) as error:
            log.warning(
                "temporary files stay until the session can be read",
                extra={"session_id": at.session_id, "reason": str(error)},
            )
            continue
        if is_purged:
            await asyncio.to_thread(private.remove_session, at)
