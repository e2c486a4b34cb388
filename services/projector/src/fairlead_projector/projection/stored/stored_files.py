"""Gives stored sessions the rows of their files again, after the read models were made again from the log."""

import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from psycopg.rows import dict_row

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import LogEntry
from fairlead_projector import database
from fairlead_projector.database import Connection, query
from fairlead_projector.errors import ShardFenced
from fairlead_projector.projection.group.held_shard import HeldShard
from fairlead_projector.projection.group.writer import GroupWriter
from fairlead_projector.projection.store import TableStore
from fairlead_schema import subjects
from fairlead_schema.session_values.stored_file import StoredState
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)

BATCH: Final = 500
TRIES: Final = 20

ReadFile: TypeAlias = Callable[[Address, StoredState], Iterable[bytes] | None]
"""The commits of the file that a marker names; None if the file is not there."""


class UnprojectedSession(NamedTuple):
    """A stored session whose messages are not in the read models."""

    at: Address
    stored: StoredState


async def project_files(
    dsn: str, eventlog: EventLog, read_file: ReadFile
) -> list[UnprojectedSession]:
    """Project the files of stored sessions. Returns the sessions whose files are not there."""
    async with await database.connect(dsn) as connection:
        missing: list[UnprojectedSession] = []
        for session in await _load_stored(connection):
            payloads = read_file(*session)
            if payloads is None:
                missing.append(session)
            else:
                await _project_file(connection, eventlog, session.at, list(payloads))
        return missing


async def _load_stored(connection: Connection) -> list[UnprojectedSession]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query("load_stored"))
        return [
            UnprojectedSession(
                Address(row["tenant"], row["session_id"]), StoredState.model_validate(row["stored"])
            )
            for row in await cursor.fetchall()
        ]


async def _project_file(
    connection: Connection, eventlog: EventLog, at: Address, payloads: list[bytes]
) -> None:
    """Replace the rows of a stored session, in one transaction. A projector may run meanwhile."""
    for _ in range(TRIES - 1):
        try:
            return await _try_to_project(connection, eventlog, at, payloads)
        except ShardFenced:
            continue  # The projector has moved the checkpoint since we read it.
    return await _try_to_project(connection, eventlog, at, payloads)


async def _try_to_project(
    connection: Connection, eventlog: EventLog, at: Address, payloads: list[bytes]
) -> None:
    store, held = TableStore(connection), HeldShard(eventlog, subjects.shard(at.session_id))
    writer = GroupWriter(store, eventlog)
    held.mark = await store.checkpoint(held.shard)
    async with store.transaction():
        session = (await store.load([at])).get(at)
        if session is None or session.row.stored is None or session.row.seq:
            return  # Somebody restored or purged it.
        marker = await eventlog.shards.entry_at(held.shard, session.row.position)
        if marker is None:
            return
        await writer.drop_session(held, at)
        entries = [LogEntry(marker.position, at, payload) for payload in payloads]
        for start in range(0, len(entries), BATCH):
            await writer.apply_again(held, entries[start : start + BATCH])
        await writer.apply_again(held, [marker])
    log.info("stored session projected from its file", extra={"session_id": at.session_id})
