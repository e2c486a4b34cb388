"""Projects broken sessions again that another release could not read."""

import logging
from collections.abc import AsyncIterator
from typing import Final

from psycopg import Error

from fairlead_eventlog.ports import LogEntry
from fairlead_projector import database
from fairlead_projector.projection.batches import is_refused
from fairlead_projector.projection.group.held_shard import HeldShard
from fairlead_projector.projection.group.shard_group import ShardGroup
from fairlead_projector.projection.group.writer import GroupWriter
from fairlead_projector.projection.release import release_name
from fairlead_projector.projection.store import TableStore
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)

BATCH: Final = 50


async def project_broken_again(group: ShardGroup, held: HeldShard) -> None:
    """Project the broken sessions of a shard from their first commit, each in one transaction.

    The connection is another one than that of the group, because the other shards must not wait.
    """
    broken = await group.load_broken(held, release_name())
    if not broken:
        return
    async with await database.connect(group.dsn) as connection:
        writer = GroupWriter(TableStore(connection), held.eventlog)
        for at in broken:
            await _try_again(writer, held, at)


async def _try_again(writer: GroupWriter, held: HeldShard, at: Address) -> None:
    try:
        broken = await _project_again(writer, held, at)
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


async def _project_again(writer: GroupWriter, held: HeldShard, at: Address) -> str | None:
    """Replace the rows of a session. The answer is the reason if it is still broken."""
    async with writer.store.transaction():
        await writer.drop_session(held, at)
        async for batch in _batches(held, at):
            await writer.apply_again(held, batch)
    return await writer.store.broken_reason(at)


async def _batches(held: HeldShard, at: Address) -> AsyncIterator[list[LogEntry]]:
    """The entries of a session up to the checkpoint of its shard."""
    batch: list[LogEntry] = []
    async for entry in held.eventlog.shards.session_entries(at, after=0):
        if entry.position > held.mark.position:
            break
        batch.append(entry)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _fields(at: Address) -> dict[str, str]:
    return {"session_id": at.session_id}
