"""Erases what a purged session left in the log's servers, as often as it takes.

It happens inside the transaction that removes the session's rows and moves the checkpoint. If either
fails, the last word is read again and both are repeated; erasing twice is erasing once.
"""

import logging
from collections.abc import Mapping

from fairlead_eventlog.connection import EventLog
from fairlead_projector import metrics
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)


async def erase(eventlog: EventLog, purges: Mapping[Address, int]) -> None:
    """Forget everything before each session's last word, its snapshot and what its calls left aside."""
    for at, position in purges.items():
        await eventlog.outputs.remove_all(at)
        await eventlog.log.erase(at, before=position)
        await eventlog.snapshots.remove(at)
        metrics.PURGED.inc()
        log.info("purged", extra={"session_id": at.session_id})
