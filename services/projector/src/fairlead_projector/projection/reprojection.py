"""Projects broken sessions again that another release could not read."""

import logging
from collections.abc import AsyncIterator
from typing import Final

from psycopg import Error

from fairlead_eventlog.ports import LogEntry
from fairlead_projector.projection.batches import is_refused
from fairlead_projector.projection.release import release_name
from fairlead_projector.projection.shard_writer import ShardWriter
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)

BATCH: Final = 50


async def project_broken_again(writer: ShardWriter) -> None:
    """Project the broken sessions of a shard from their first commit, each in one transaction."""
    for at in await writer.store.load_broken(release_name()):
        try:
            broken = await _project_again(writer, at)
        except Error as error:
            writer.store.forget()
            if not is_refused(error, alone=True):
                raise
            await writer.store.note_broken_by(at, release_name())
            broken = f"not storable: {error}"
        if broken is None:
            log.info("broken session projected: this release can read it", extra=_fields(at))
        else:
            extra = {**_fields(at), "reason": broken}
            log.warning("session still broken: it waits for another release", extra=extra)


async def _project_again(writer: ShardWriter, at: Address) -> str | None:
    """Replace the rows of a session. The answer is the reason if it is still broken."""
    async with writer.store.transaction():
        await writer.drop_session(at)
        async for batch in _batches(writer, at):
            await writer.apply_again(batch)
    return await writer.store.broken_reason(at)


async def _batches(writer: ShardWriter, at: Address) -> AsyncIterator[list[LogEntry]]:
    """The entries of a session up to the checkpoint of its shard."""
    batch: list[LogEntry] = []
    async for entry in writer.eventlog.shards.session_entries(at, after=0):
        if entry.position > writer.mark.position:
            break
        batch.append(entry)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _fields(at: Address) -> dict[str, str]:
    return {"session_id": at.session_id}
