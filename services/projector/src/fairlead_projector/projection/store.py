"""Loads the rows of sessions, and writes a batch with the checkpoints of its shards in one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final, NamedTuple

from psycopg import AsyncTransaction
from psycopg.rows import class_row, dict_row
from pydantic import TypeAdapter

from fairlead_projector.database import Connection, query
from fairlead_projector.projection.batches import join_pages
from fairlead_projector.projection.copy_lines import event_lines, input_lines, message_lines
from fairlead_projector.projection.recent_sessions import CacheLimits, RecentSessions
from fairlead_projector.projection.row_changes import MessageKey, RowChanges
from fairlead_projector.projection.rows import (
    MessageRow,
    ProjectedSession,
    SessionRow,
    json_row,
)
from fairlead_projector.projection.session_row import EXECUTION_EVENT_TYPES, fold_execution
from fairlead_projector.restore import ReaderMark
from fairlead_schema import subjects
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.message import MESSAGE
from fairlead_schema.record import Recorded, RecordError, decode_event
from fairlead_schema.session_info import ChildrenUsage, ModelUsage
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_schema.session_values.stored_file import StoredState
from fairlead_schema.subjects import Address
from fairlead_session.state.execution import CallKey, Execution
from fairlead_session.state.file_changes import FileChanges

# Postgres stores no jsonb above 256 MB, and reads each parameter as a whole.
PARAMETER_BYTES_MAX: Final = 16 * 1024 * 1024
_EXECUTION: Final = TypeAdapter(Execution)
_CALLS: Final = TypeAdapter(tuple[CallKey, ...])
_MODELS: Final = TypeAdapter(tuple[ModelUsage, ...])
_CHANGES: Final = TypeAdapter(FileChanges)


class CheckpointMove(NamedTuple):
    """The checkpoint of a shard before and after a batch."""

    after: int
    mark: ReaderMark


class TableStore:
    """The tables through one connection, with a cache of recent sessions."""

    def __init__(self, connection: Connection, cache: CacheLimits = CacheLimits()) -> None:  # noqa: B008 - a frozen value
        self._connection = connection
        self._recent = RecentSessions(cache)

    async def checkpoint(self, shard: int) -> ReaderMark:
        """How far a shard is projected."""
        key = {"shard": shard}
        await self._connection.execute(query("begin_checkpoint"), key)
        async with self._connection.cursor(row_factory=class_row(ReaderMark)) as cursor:
            await cursor.execute(query("load_checkpoint"), key)
            (mark,) = await cursor.fetchall()
        return mark

    async def positions(self) -> dict[int, int]:
        """How far all shards are projected."""
        cursor = await self._connection.execute(query("load_checkpoints"))
        return dict(await cursor.fetchall())

    def transaction(self) -> AbstractAsyncContextManager[AsyncTransaction]:
        """Everything in the block is committed together."""
        return self._connection.transaction()

    async def restart(self, incarnation: str | None) -> None:
        """Remove all rows of all shards, and move every checkpoint to the beginning, once."""
        async with self._connection.transaction():
            new = {"incarnation": incarnation}
            # This comes first, because its row locks keep the writers of all shards out.
            moved = await self._connection.execute(query("restart_checkpoints"), new)
            if moved.rowcount:
                await self._connection.execute(query("delete_rows"))
        self.forget()

    async def load_broken(self, shard: int, release: str) -> list[Address]:
        """The sessions of a shard that another release found broken."""
        cursor = await self._connection.execute(query("load_broken"), {"release": release})
        found = [Address(*row) for row in await cursor.fetchall()]
        return [at for at in found if subjects.shard(at.session_id) == shard]

    async def note_broken_by(self, at: Address, release: str) -> None:
        """Note that this release cannot project a broken session either."""
        parameters = {**at._asdict(), "release": release}
        await self._connection.execute(query("note_broken_by"), parameters)

    async def broken_reason(self, at: Address) -> str | None:
        """Why a session is broken, if it is."""
        session = (await self.load([at])).get(at)
        return None if session is None else session.row.broken

    async def load(self, addresses: Iterable[Address]) -> dict[Address, ProjectedSession]:
        """The existing sessions among the addresses, each with what its next commit may change."""
        wanted = dict.fromkeys(addresses)
        sessions = self._recent.find(wanted)
        loaded = await self._load_sessions([at for at in wanted if at not in sessions])
        await self._load_newest_assistants(loaded)
        await self._load_pending({at: item for at, item in loaded.items() if item.row.pending})
        await self._load_asks({at: item for at, item in loaded.items() if item.row.asks})
        return sessions | loaded

    async def load_messages(
        self, sessions: Mapping[Address, ProjectedSession], wanted: Sequence[MessageKey]
    ) -> None:
        """Give the sessions those of the messages that exist."""
        message_ids = [message_id for _at, message_id in wanted]
        addresses = [at for at, _message_id in wanted]
        for row in await self._fetch("load_messages", addresses, message_ids=message_ids):
            message = _message_row(row)
            sessions[_address(row)].messages[message.message.id] = message

    async def advance(self, moves: Mapping[int, CheckpointMove]) -> set[int]:
        """Move the checkpoints of shards, and return the shards whose checkpoint stood where it should.

        This comes first in a transaction: its row locks keep other writers of the shards out.
        """
        marks = [move.mark for move in moves.values()]
        parameters = {
            "shards": list(moves),
            "afters": [move.after for move in moves.values()],
            "positions": [mark.position for mark in marks],
            "incarnations": [mark.incarnation for mark in marks],
            "digests": [mark.digest for mark in marks],
        }
        cursor = await self._connection.execute(query("advance_checkpoints"), parameters)
        return {shard for (shard,) in await cursor.fetchall()}

    async def write(self, changes: RowChanges) -> None:
        """Write a batch, inside the transaction that has moved the checkpoints of its shards."""
        connection = self._connection
        for at in changes.restarts:
            await connection.execute(query("purge_session"), at._asdict())
        await self._copy("copy_events", event_lines(changes.events))
        await self._write("upsert_sessions", changes.sessions.values())
        inputs, created = changes.inputs, changes.created_inputs
        await self._copy(
            "copy_inputs", input_lines(inputs[key] for key in inputs if key in created)
        )
        await self._write("insert_inputs", (inputs[key] for key in inputs if key not in created))
        await self._write("change_inputs", changes.input_changes.values())
        await self._write("insert_asks", changes.asks.values())
        await self._write("delete_asks", [key._asdict() for key in changes.answers])
        messages = changes.messages
        new = ((*key, messages[key]) for key in messages if key in changes.created)
        await self._copy("copy_messages", message_lines(new))
        revised = {key: row for key, row in messages.items() if key not in changes.created}
        await self._write("upsert_messages", _message_rows(revised))
        for truncation in changes.truncations:
            await connection.execute(query("truncate_messages"), truncation._asdict())
            await connection.execute(query("truncate_inputs"), truncation._asdict())
        for at in changes.purges:
            await connection.execute(query("purge_session"), at._asdict())
        await self._write("add_tenant_totals", changes.tenants)
        principals = changes.principals
        await self._write("add_principal_totals", principals)
        gone = [change for change in principals if change.sessions < 0]
        await self._write("drop_empty_principals", gone)

    def remember(self, sessions: Mapping[Address, ProjectedSession], changes: RowChanges) -> None:
        """Keep the sessions of a committed batch in the cache."""
        for at in changes.purges:
            self._recent.drop(at)
        truncated = {(item.tenant, item.session_id) for item in changes.truncations}
        for at, session in sessions.items():
            self._recent.drop(at)
            if at not in truncated:
                session.forget_closed()
                self._recent.put(at, session)

    def forget(self) -> None:
        """Clear the cache, because a failed transaction left its sessions changed."""
        self._recent.clear()

    def forget_shard(self, shard: int) -> None:
        """Drop the sessions of a shard from the cache, because another writer may change them."""
        self._recent.drop_all(lambda at: subjects.shard(at.session_id) == shard)

    async def _copy(self, name: str, lines: bytes) -> None:
        if lines:
            async with self._connection.cursor().copy(query(name)) as copy:
                await copy.write(lines)

    async def _write(self, name: str, rows: Iterable[object]) -> None:
        for page in join_pages(map(json_row, rows), bytes_max=PARAMETER_BYTES_MAX):
            await self._connection.execute(query(name), {"rows": page.decode()})

    async def _load_sessions(self, wanted: Sequence[Address]) -> dict[Address, ProjectedSession]:
        rows = await self._fetch("load_sessions", wanted)
        old = [_address(row) for row in rows if row["execution"] is None]
        executions = await self._fold_executions(old)
        return {
            _address(row): ProjectedSession(_session_row(row, executions.get(_address(row))))
            for row in rows
        }

    async def _fold_executions(self, addresses: Sequence[Address]) -> dict[Address, Execution]:
        """The executions of rows from an earlier release, which had no such column."""
        events: dict[Address, list[Recorded]] = {at: [] for at in addresses}
        types = list(EXECUTION_EVENT_TYPES)
        for row in await self._fetch("load_execution_events", addresses, types=types):
            # Postgres cannot hold NaN in JSON. Such an event does not decode, and is left out.
            with suppress(RecordError):
                events[_address(row)].append(decode_event(row))
        return {at: fold_execution(at, recorded) for at, recorded in events.items()}

    async def _load_newest_assistants(self, sessions: Mapping[Address, ProjectedSession]) -> None:
        for row in await self._fetch("load_newest_assistants", list(sessions)):
            newest, session = _message_row(row), sessions[_address(row)]
            session.messages[newest.message.id] = newest
            session.newest_assistant = newest.message.id
            session.message_bytes = len(row["message"])

    async def _load_pending(self, sessions: Mapping[Address, ProjectedSession]) -> None:
        for row in await self._fetch("load_pending", list(sessions)):
            sessions[_address(row)].pending[row["message_id"]] = row["admitted_seq"]

    async def _load_asks(self, sessions: Mapping[Address, ProjectedSession]) -> None:
        for row in await self._fetch("load_asks", list(sessions)):
            has_call = row["call_id"] is not None
            source = (row["message_id"], row["call_id"]) if has_call else None
            sessions[_address(row)].asks[row["request_id"]] = source

    async def _fetch(
        self, name: str, wanted: Sequence[Address], **more: Sequence[str]
    ) -> list[dict[str, Any]]:
        if not wanted:
            return []
        parameters = {
            "tenants": [at.tenant for at in wanted],
            "session_ids": [at.session_id for at in wanted],
            **more,
        }
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query(name), parameters)
            return await cursor.fetchall()


def _address(row: Mapping[str, Any]) -> Address:
    return Address(row["tenant"], row["session_id"])


def _session_row(row: dict[str, Any], execution: Execution | None) -> SessionRow:
    model, revert, stored = row["model"], row["revert"], row["stored"]
    return SessionRow(
        **row
        | {
            "model": None if model is None else ModelRef.model_validate(model),
            "revert": None if revert is None else RevertState.model_validate(revert),
            "stored": None if stored is None else StoredState.model_validate(stored),
            "tokens": Tokens.model_validate(row["tokens"]),
            "models": _MODELS.validate_python(row["models"]),
            "children": ChildrenUsage.model_validate(row["children"]),
            "file_changes": _CHANGES.validate_python(row["file_changes"]),
            "execution": execution or _EXECUTION.validate_python(row["execution"]),
            "started_calls": _CALLS.validate_python(row["started_calls"]),
        }
    )


def _message_row(row: Mapping[str, Any]) -> MessageRow:
    return MessageRow(row["seq"], MESSAGE.validate_json(row["message"]))


def _message_rows(messages: Mapping[MessageKey, MessageRow]) -> list[dict[str, object]]:
    return [
        {
            "tenant": at.tenant,
            "session_id": at.session_id,
            "message_id": message_id,
            "seq": row.seq,
            "message": row.message,
        }
        for (at, message_id), row in messages.items()
    ]
