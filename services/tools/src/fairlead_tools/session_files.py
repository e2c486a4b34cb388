"""Removes what sessions left in the private directory: files and snapshots of purged sessions, and of old ones."""

import asyncio
import logging
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import START, SessionLog
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service.config.sections import ToolsConfig
from fairlead_tools.file_snapshots.git import GitFailed
from fairlead_tools.file_snapshots.pruning import forget_old, list_stores, prune, shrink
from fairlead_tools.private_directory import PrivateDirectory
from fairlead_tools.spool import remove_stale_spools

log = logging.getLogger(__name__)

EVERY_S: Final = 600.0


async def keep_clean(
    private: PrivateDirectory, session_log: SessionLog, settings: ToolsConfig
) -> None:
    """Remove old files now and again, for ever."""
    while True:
        await remove_leftovers(private, session_log)
        await remove_snapshots(private, session_log, settings)
        await asyncio.sleep(EVERY_S)


async def remove_leftovers(private: PrivateDirectory, session_log: SessionLog) -> None:
    """Remove the files of dead workers, of purged sessions and of sessions that rest for long."""
    await asyncio.to_thread(remove_stale_spools, private.spools)
    await asyncio.to_thread(private.remove_old_sessions)
    for at in tuple(private.used):
        if await _is_purged(session_log, at):
            await asyncio.to_thread(private.remove_session, at)


async def remove_snapshots(
    private: PrivateDirectory, session_log: SessionLog, settings: ToolsConfig
) -> None:
    """Free the snapshots of purged sessions, of sessions that rest for long, and of full stores."""
    for store in await asyncio.to_thread(list_stores, private.snapshots):
        forgotten = await asyncio.to_thread(forget_old, store, settings.snapshot_days)
        for at in store.sessions():
            if await _is_purged(session_log, at):
                store.forget(at)
                forgotten = True
        try:
            if forgotten or not store.worktree.is_dir():
                await asyncio.to_thread(prune, store)
            await asyncio.to_thread(shrink, store, settings.snapshot_bytes_max)
        except (GitFailed, OSError) as error:
            extra = {"worktree": str(store.worktree), "reason": str(error)}
            log.warning("old snapshots of files stay: they are removed later", extra=extra)


async def _is_purged(session_log: SessionLog, at: Address) -> bool:
    try:
        return await session_log.head(at) == START
    except (LogError, RecordError) as error:
        log.warning(
            "files of a session stay until its log can be read",
            extra={"session_id": at.session_id, "reason": str(error)},
        )
        return False
