"""Erases the data of purged sessions from NATS.

This happens inside the transaction that removes the rows and moves the checkpoint. If either fails,
the projector reads the last word again and repeats both. Erasing twice does no harm.
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
        await eventlog.outputs.remove_all(at)
        with suppress(StreamMissing):  # Nobody has provisioned this release yet.
            await eventlog.attachments.remove_all(at)
        await eventlog.log.erase(at, before=position)
        await eventlog.snapshots.remove(at)
        metrics.PURGED.inc()
        log.info("session purged", extra={"session_id": at.session_id})
