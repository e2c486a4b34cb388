"""Erases what a purged session left in the log's servers, as often as it takes.

It happens inside the transaction that removes the session's rows and moves the checkpoint. If either
fails, the last word is read again and both are repeated; erasing twice is erasing once.
"""

import logging
from collections.abc import Mapping

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.port import START
from fairlead_projector import metrics
from fairlead_schema.events import ToolSucceeded
from fairlead_schema.ids import OutputId
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_schema.tool import managed_id

log = logging.getLogger(__name__)


async def erase(eventlog: EventLog, purges: Mapping[Address, int]) -> None:
    """Forget everything before each session's last word, its snapshot and what its calls left aside."""
    for at, position in purges.items():
        # First: afterwards nothing says which they were.
        for output_id in await _outputs(eventlog, at):
            await eventlog.outputs.drop(at.tenant, output_id)
        await eventlog.log.erase(at, before=position)
        await eventlog.snapshots.drop(at)
        metrics.PURGED.inc()
        log.info("purged", extra={"session_id": at.session_id})


async def _outputs(eventlog: EventLog, at: Address) -> list[OutputId]:
    """The managed outputs that a session's log names, as far as it can be read."""
    found: list[OutputId] = []
    head, more = START, True
    while more:
        try:
            page = await eventlog.log.read(at, after=head)
        except RecordError as error:
            log.warning("outputs left", extra={"session_id": at.session_id, "reason": str(error)})
            break
        events = (one.event for stored in page.commits for one in stored.commit.events)
        for event in events:
            if isinstance(event, ToolSucceeded):
                found += filter(None, map(managed_id, event.output_paths or ()))
        head, more = page.commits[-1].head if page.commits else head, page.more
    return found
