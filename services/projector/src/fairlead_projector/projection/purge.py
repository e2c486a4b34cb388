"""Erases the data of purged and of stored sessions from NATS.

This happens inside the transaction that removes the rows and moves the checkpoint. If either fails,
the projector reads the last word or the marker again and repeats both. Erasing twice does no harm.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import StreamMissing
from fairlead_projector import metrics
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)


async def erase(eventlog: EventLog, purges: Mapping[Address, int]) -> None:
    """Erase the log before each session's last word, its snapshot, outputs and attachments."""
    for at, position in purges.items():
        await _remove_objects(eventlog, at)
        await eventlog.log.erase(at, before=position)
        await eventlog.snapshots.remove(at)
        metrics.PURGED.inc()
        log.info("session purged", extra={"session_id": at.session_id})


async def erase_stored(eventlog: EventLog, stores: Mapping[Address, int]) -> None:
    """Erase the log before each marker, and what the file of the session has too.

    The log goes last, so that a marker that comes first in it needs nothing more: a rebuild reads it
    again, and the session may be back. A replica that lags may still show an erased log. The leader
    then tells whether something follows the marker, and outputs of a restored session stay.
    """
    for at, position in stores.items():
        first = (await eventlog.log.read_entries(at, after=0, limit=1)).entries
        if first and first[0].position == position:
            continue
        if await eventlog.log.last_commit_position(at) == position:
            await _remove_objects(eventlog, at)
        await eventlog.snapshots.remove(at)
        await eventlog.log.erase(at, before=position)
        metrics.STORED.inc()
        log.info("session stored: its log is in a file", extra={"session_id": at.session_id})


async def _remove_objects(eventlog: EventLog, at: Address) -> None:
    await eventlog.outputs.remove_all(at)
    with suppress(StreamMissing):  # Nobody has provisioned this release yet.
        await eventlog.attachments.remove_all(at)
