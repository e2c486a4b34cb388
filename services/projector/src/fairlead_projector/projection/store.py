"""Runs a batch's row changes and its checkpoint in one transaction, so redelivery is a no-op."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from psycopg.rows import dict_row
from pydantic import TypeAdapter

from fairlead_projector.database import Connection, cell, query
from fairlead_projector.errors import Fenced
from fairlead_projector.projection.rows import (
    MessageRow,
    Projected,
    SessionRow,
    copy_text,
    json_rows,
)
from fairlead_projector.projection.statements import Changes, MessageKey
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events.session import RevertState
from fairlead_schema.message import MESSAGE
from fairlead_schema.subjects import Address
from fairlead_session.state.execution import Execution, Interrupt, Owner, RestState

SESSIONS_MAX: Final = 2_000
_EXECUTION: Final = TypeAdapter(Execution)


class Store:
    """The tables of one shard through one connection, with the sessions it saw last."""

    def __init__(self, connection: Connection, shard: int) -> None:
        self._connection = connection
        self._shard = shard
        self._recent: OrderedDict[Address, Projected] = OrderedDict()

    async def checkpoint(self) -> int:
        """How far the shard has been projected."""
        shard = {"shard": self._shard}
        await self._connection.execute(query("begin_checkpoint"), shard)
        cursor = await self._connection.execute(query("load_checkpoint"), shard)
        position = await cell(cursor.fetchone())
        assert isinstance(position, int), position
        return position

    async def load(
        self, touched: Iterable[Address], named: Iterable[MessageKey]
    ) -> dict[Address, Projected]:
        """What exists of the touched sessions, with their named messages."""
        wanted = dict.fromkeys(touched)
        found = {at: self._recent[at] for at in wanted if at in self._recent}
        fresh = await self._sessions([at for at in wanted if at not in found])
        await self._newest_assistants(fresh)
        await self._pending({at: one for at, one in fresh.items() if one.row.pending})
        await self._asks({at: one for at, one in fresh.items() if one.row.asks})
        found |= fresh
        unknown = dict.fromkeys(
            (at, id_) for at, id_ in named if at in found and id_ not in found[at].messages
        )
        await self._messages(found, list(unknown))
        return found

    @asynccontextmanager
    async def applying(self, changes: Changes, *, after: int, position: int) -> AsyncIterator[None]:
        """Write a batch and move the checkpoint; both are committed when the block ends well.

        Raises Fenced when another writer moved the checkpoint.
        """
        connection = self._connection
        async with connection.transaction():
            # First, because its row lock keeps every other writer of the shard out.
            moved = await connection.execute(
                query("advance_checkpoint"),
                {"shard": self._shard, "after": after, "position": position},
            )
            if moved.rowcount != 1:
                raise Fenced(self._shard, after)
            if changes.events:
                async with connection.cursor().copy(query("copy_events")) as copy:
                    await copy.write(copy_text(changes.events))
            await self._write("upsert_sessions", changes.sessions.values())
            await self._write("insert_inputs", changes.inputs.values())
            await self._write("change_inputs", changes.input_changes.values())
            await self._write("insert_asks", changes.asks.values())
            await self._write("delete_asks", [key._asdict() for key in changes.answers])
            await self._write("upsert_messages", _message_rows(changes.messages))
            for truncation in changes.truncations:
                await connection.execute(query("truncate_messages"), truncation._asdict())
                await connection.execute(query("truncate_inputs"), truncation._asdict())
            for at in changes.purges:
                await connection.execute(query("purge_session"), at._asdict())
            yield

    def remember(self, sessions: Mapping[Address, Projected], changes: Changes) -> None:
        """Keep what a committed batch left, within bounds."""
        for at in changes.purges:
            self._recent.pop(at, None)
        truncated = {(one.tenant, one.session_id) for one in changes.truncations}
        for at, session in sessions.items():
            self._recent.pop(at, None)
            if at not in truncated:
                session.forget_closed()
                self._recent[at] = session
        while len(self._recent) > SESSIONS_MAX:
            self._recent.popitem(last=False)

    def forget(self) -> None:
        """Trust nothing in memory: a transaction failed half-way through."""
        self._recent.clear()

    async def _write(self, name: str, rows: Iterable[object]) -> None:
        if rows := list(rows):
            await self._connection.execute(query(name), {"rows": json_rows(rows)})

    async def _sessions(self, wanted: Sequence[Address]) -> dict[Address, Projected]:
        rows = await self._fetch("load_sessions", wanted)
        return {_address(row): Projected(_session_row(row)) for row in rows}

    async def _newest_assistants(self, sessions: Mapping[Address, Projected]) -> None:
        for row in await self._fetch("load_newest_assistants", list(sessions)):
            placed, session = _message_row(row), sessions[_address(row)]
            session.messages[placed.message.id] = placed
            session.newest_assistant = placed.message.id

    async def _pending(self, sessions: Mapping[Address, Projected]) -> None:
        for row in await self._fetch("load_pending", list(sessions)):
            sessions[_address(row)].pending[row["message_id"]] = row["admitted_seq"]

    async def _asks(self, sessions: Mapping[Address, Projected]) -> None:
        for row in await self._fetch("load_asks", list(sessions)):
            known = row["call_id"] is not None
            source = (row["message_id"], row["call_id"]) if known else None
            sessions[_address(row)].asks[row["request_id"]] = source

    async def _messages(
        self, sessions: Mapping[Address, Projected], wanted: Sequence[MessageKey]
    ) -> None:
        message_ids = [message_id for _at, message_id in wanted]
        addresses = [at for at, _message_id in wanted]
        for row in await self._fetch("load_messages", addresses, message_ids=message_ids):
            placed = _message_row(row)
            sessions[_address(row)].messages[placed.message.id] = placed

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


def _session_row(row: dict[str, Any]) -> SessionRow:
    model, revert = row["model"], row["revert"]
    return SessionRow(
        **row
        | {
            "model": None if model is None else ModelRef.model_validate(model),
            "revert": None if revert is None else RevertState.model_validate(revert),
            "tokens": Tokens.model_validate(row["tokens"]),
            "execution": _execution(row),
        }
    )


def _execution(row: Mapping[str, Any]) -> Execution:
    if row["execution"] is not None:
        return _EXECUTION.validate_python(row["execution"])
    # An earlier release wrote the row: its columns are as much as it knew.
    return Execution(
        owner=None if row["owner"] is None else Owner(row["owner"], 0),
        owed=row["owed"],
        work_requested=row["work_requested"],
        interrupt=Interrupt() if row["interrupted"] else None,
        rest=None if row["rested"] is None else RestState(row["rested"], wake_at=row["wake_at"]),
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
