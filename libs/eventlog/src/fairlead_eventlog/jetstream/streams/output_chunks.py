"""Chunks of an object store that are not, or not yet, an object."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.replicas.patience import Patience
from fairlead_schema.ids import OutputId, TenantId

# How many chunks a reader holds in memory at a time.
BATCH: Final = 4
REPLICA_WAIT_S: Final = 1.0


class Chunks(NamedTuple):
    """The chunks of one try to store an output."""

    subject: str
    tenant: TenantId
    output_id: OutputId


async def read_chunks(
    link: NatsLink, stream: str, subject: str, *, count: int
) -> AsyncIterator[bytes]:
    """Up to `count` chunks of a subject. A replica may not have the newest ones yet."""
    sequence, left, patience = 1, count, Patience(REPLICA_WAIT_S)
    while left:
        chunks, _ = await link.read_subject(stream, subject, first=sequence, batch=min(BATCH, left))
        if not chunks and not await patience.pause():
            return
        for chunk in chunks:
            yield chunk.payload
            sequence, left = chunk.sequence + 1, left - 1


async def is_idle(link: NatsLink, stream: str, subject: str, idle_s: float) -> bool:
    """Whether nothing was added to a subject for so long. False: there is nothing."""
    last = await link.last_message(stream, subject)
    if last is None:
        return False
    added = datetime.fromisoformat(last.time_stamp)
    return (datetime.now(UTC) - added).total_seconds() >= idle_s
