"""The read models in Postgres, through a small pool. Raises our errors instead of psycopg's."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import sql
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from fairlead_gateway.reads import rows
from fairlead_gateway.reads.noted_connections import connection_class
from fairlead_gateway.reads.queries import query
from fairlead_gateway.reads.read_model import (
    ASKS_MAX,
    ActivityRow,
    AskKind,
    AskWithSession,
    BrokenSession,
    Order,
    ProjectionProgress,
    ReadsUnavailable,
    RecoveredSession,
    SessionAnchor,
    SessionFilter,
    StateCounts,
)
from fairlead_gateway.reads.session_lists import list_parameters, list_statement
from fairlead_schema.commands.session_status import SessionOverview
from fairlead_schema.ids import MessageId, SessionId, TenantId
from fairlead_schema.message import Message
from fairlead_schema.prompt import Delivery
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import Address
from fairlead_service.postgres_failure import explain_postgres_failure
from fairlead_service.supervise import cancel_and_wait

log = logging.getLogger(__name__)

PING_INTERVAL_S: Final = 0.5
PING_TIMEOUT_S: Final = 1.0
ACQUIRE_TIMEOUT_S: Final = 1.0
# The pool gives up on a failed connection this soon, so that the next ping tries again.
RECONNECT_S: Final = 1.0
# A page of messages ends after the message that reaches so many bytes.
MESSAGE_PAGE_BYTES: Final = 8 * 1024 * 1024
# A directory with at least every second ask fills a list from so many asks.
NEAR_ASKS: Final = 2 * ASKS_MAX
# So many sessions with the newest finished steps are looked at for each one that changed lately.
RECENT_CANDIDATES: Final = 8
_SEQ_MAX: Final = 2**63 - 1
_NOT_MIGRATED: Final = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.InvalidSchemaName,
)
_QUERIES: Final = {"asc": "ascending", "desc": "descending"}

Pool: TypeAlias = AsyncConnectionPool[psycopg.AsyncConnection[DictRow]]
Parameters: TypeAlias = dict[str, object]


class PostgresReadModel:
    """Answers from the views in schema `read`."""

    def __init__(self, dsn: str, *, connections_max: int, timeout_s: float) -> None:
        self._dsn = dsn
        self._connections_max = connections_max
        self._timeout_s = timeout_s
        self._pool: Pool | None = None
        self._complaint: str | None = "starting"
        self._failure: psycopg.Error | None = None

    def complaint(self) -> str | None:
        """Why Postgres does not answer now; None if it does."""
        return self._complaint

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep a pool open during the block, and ping Postgres.

        The block starts without a connection. Until a ping succeeds, `complaint` says why, and
        reads raise ReadsUnavailable.
        """
        pool = self._pool = AsyncConnectionPool(
            self._dsn,
            connection_class=connection_class(self._note_failure),
            kwargs={"autocommit": True, "row_factory": dict_row, "connect_timeout": 3},
            min_size=1,
            max_size=self._connections_max,
            timeout=ACQUIRE_TIMEOUT_S,
            reconnect_timeout=RECONNECT_S,
            check=AsyncConnectionPool.check_connection,
            open=False,
            name="gateway",
        )
        await pool.open(wait=False)
        ping_task = asyncio.create_task(self._ping())
        try:
            yield
        finally:
            await cancel_and_wait(ping_task)
            self._pool = None
            await pool.close()

    async def progress(self, at: Address) -> ProjectionProgress | None:
        row = await self._fetch_one("progress", _session_key(at))
        return None if row is None else ProjectionProgress(row["seq"], row["broken"])

    async def session(self, at: Address) -> SessionInfo | None:
        row = await self._fetch_one("session", _session_key(at))
        return None if row is None else rows.session_from_row(row)

    async def sessions(
        self,
        tenant: TenantId,
        wanted: SessionFilter,
        *,
        order: Order,
        after: SessionAnchor | None,
        limit: int,
    ) -> Sequence[SessionInfo]:
        found = await self._list(
            wanted, order, list_parameters(tenant, wanted, order=order, after=after, limit=limit)
        )
        return [rows.session_from_row(row) for row in found]

    async def overviews(
        self,
        tenant: TenantId,
        wanted: SessionFilter,
        *,
        order: Order,
        after: SessionAnchor | None,
        limit: int,
    ) -> Sequence[SessionOverview]:
        found = await self._list(
            wanted, order, list_parameters(tenant, wanted, order=order, after=after, limit=limit)
        )
        return [rows.overview_from_row(row) for row in found]

    async def overviews_by_id(
        self, tenant: TenantId, session_ids: Sequence[SessionId]
    ) -> Sequence[SessionOverview]:
        parameters: Parameters = {"tenant": tenant, "session_ids": list(session_ids)}
        found = await self._fetch_all("sessions_by_id", parameters)
        return [rows.overview_from_row(row) for row in found]

    async def state_counts(self, tenant: TenantId) -> StateCounts:
        (row,) = await self._fetch_all("state_counts", {"tenant": tenant})
        return StateCounts(row["running"], row["waiting"], row["asks"], row["broken"])

    async def active(self, tenant: TenantId) -> Sequence[SessionId]:
        return [row["session_id"] for row in await self._fetch_all("active", {"tenant": tenant})]

    async def recent_sessions(
        self, tenant: TenantId, *, since: int, limit: int
    ) -> Sequence[SessionId]:
        candidates = limit * RECENT_CANDIDATES
        parameters = {"tenant": tenant, "since": since, "limit": limit, "candidates": candidates}
        return [row["session_id"] for row in await self._fetch_all("recent_sessions", parameters)]

    async def message(self, at: Address, message_id: MessageId) -> Message | None:
        row = await self._fetch_one("message", {**_session_key(at), "message_id": message_id})
        return None if row is None else rows.message_from_row(row)

    async def message_seq(self, at: Address, message_id: MessageId) -> int | None:
        row = await self._fetch_one("message_seq", {**_session_key(at), "message_id": message_id})
        return None if row is None else row["seq"]

    async def messages(
        self, at: Address, *, order: Order, after: int | None, limit: int
    ) -> Sequence[Message]:
        first = 0 if order == "asc" else _SEQ_MAX
        parameters = {
            **_session_key(at),
            "after": first if after is None else after,
            "limit": limit,
            "bytes_max": MESSAGE_PAGE_BYTES,
        }
        messages = await self._fetch_all(f"messages_{_QUERIES[order]}", parameters)
        return [rows.message_from_row(row) for row in messages]

    async def context(self, at: Address) -> Sequence[Message]:
        return [
            rows.message_from_row(row) for row in await self._fetch_all("context", _session_key(at))
        ]

    async def asks(
        self, tenant: TenantId, kind: AskKind, *, directory: str | None
    ) -> Sequence[Mapping[str, Any]]:
        parameters: Parameters = {
            "tenant": tenant,
            "kind": kind,
            "directory": directory,
            "near": NEAR_ASKS,
            "limit": ASKS_MAX,
        }
        name = "asks" if directory is None else "asks_near"
        found = await self._fetch_list(query(name), parameters)
        if directory is not None and len(found) < ASKS_MAX:
            found = await self._fetch_list(query("asks_in_directory"), parameters)
        return [row["request"] for row in found]

    async def asks_with_sessions(self, tenant: TenantId, *, limit: int) -> Sequence[AskWithSession]:
        parameters: Parameters = {"tenant": tenant, "limit": limit}
        return [
            AskWithSession(**row) for row in await self._fetch_all("asks_with_sessions", parameters)
        ]

    async def activity(self, tenant: TenantId, *, since: int) -> ActivityRow:
        (row,) = await self._fetch_all("activity", {"tenant": tenant, "since": since})
        return ActivityRow(**row)

    async def checkpoints(self) -> Mapping[int, int]:
        return {row["shard"]: row["position"] for row in await self._fetch_all("checkpoints", {})}

    async def broken_sessions(self, tenant: TenantId, *, limit: int) -> Sequence[BrokenSession]:
        found = await self._fetch_all("broken", {"tenant": tenant, "limit": limit})
        return [BrokenSession(**row) for row in found]

    async def recoveries(
        self, tenant: TenantId, *, since: int, limit: int
    ) -> Sequence[RecoveredSession]:
        parameters: Parameters = {"tenant": tenant, "since": since, "limit": limit}
        return [RecoveredSession(**row) for row in await self._fetch_all("recoveries", parameters)]

    async def child_asks(self, at: Address, kind: AskKind) -> Sequence[Mapping[str, Any]]:
        parameters: Parameters = {**_session_key(at), "kind": kind, "limit": ASKS_MAX}
        return [row["request"] for row in await self._fetch_all("child_asks", parameters)]

    async def delivery(self, at: Address, message_id: MessageId) -> Delivery | None:
        row = await self._fetch_one("delivery", {**_session_key(at), "message_id": message_id})
        return None if row is None else row["delivery"]

    async def _list(
        self, wanted: SessionFilter, order: Order, parameters: Parameters
    ) -> list[dict[str, Any]]:
        name = "sessions_near" if wanted.search else "sessions"
        found = await self._fetch_list(list_statement(name, wanted, order), parameters)
        if not wanted.search or len(found) >= int(str(parameters["limit"])):
            return found
        # Few titles contain the text, so their index finds all of them at once.
        statement = list_statement("sessions_by_title", wanted, order)
        return await self._fetch_list(statement, parameters)

    async def _fetch_one(self, name: str, parameters: Parameters) -> dict[str, Any] | None:
        result = await self._fetch_all(name, parameters)
        assert len(result) <= 1, f"{name} selects by primary key"
        return result[0] if result else None

    async def _fetch_all(self, name: str, parameters: Parameters) -> list[dict[str, Any]]:
        self._check_available()
        return await self._execute(query(name), parameters, self._timeout_s)

    async def _fetch_list(
        self, statement: bytes | sql.Composed, parameters: Parameters
    ) -> list[dict[str, Any]]:
        """Fetch a list whose best plan depends on the values: they are planned for each time."""
        self._check_available()
        return await self._execute(statement, parameters, self._timeout_s, prepare=False)

    def _check_available(self) -> None:
        if self._complaint is not None:
            raise ReadsUnavailable(self._complaint)

    async def _execute(
        self,
        statement: bytes | sql.Composed,
        parameters: Parameters,
        timeout_s: float,
        *,
        prepare: bool | None = None,
    ) -> list[dict[str, Any]]:
        if self._pool is None:
            raise ReadsUnavailable("not open")
        try:
            async with asyncio.timeout(timeout_s), self._pool.connection() as connection:
                cursor = await connection.execute(statement, parameters, prepare=prepare)
                return await cursor.fetchall()
        except TimeoutError as error:
            if self._failure is not None:
                raise ReadsUnavailable(explain_postgres_failure(self._failure)) from error
            raise ReadsUnavailable(f"no answer within {timeout_s} s") from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise ReadsUnavailable(explain_postgres_failure(self._failure or error)) from error
        except _NOT_MIGRATED as error:
            raise ReadsUnavailable("the read models are not migrated yet") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise ReadsUnavailable(
                "this role may not read the views: run `fairlead migrate`"
            ) from error

    def _note_failure(self, error: psycopg.Error | None) -> None:
        self._failure = error

    async def _ping(self) -> None:
        while True:
            try:
                await self._execute(query("ping"), {}, PING_TIMEOUT_S)
                self._complaint = None
            except ReadsUnavailable as error:
                if str(error) != self._complaint:
                    log.warning(
                        "reads are unavailable until Postgres answers: everything else goes on",
                        extra={"reason": str(error)},
                    )
                self._complaint = str(error)
            await asyncio.sleep(PING_INTERVAL_S)


def _session_key(at: Address) -> Parameters:
    return {"tenant": at.tenant, "session_id": at.session_id}
