"""Answers what a tenant or a principal has and uses, so that other services can keep its budget and its quotas."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

import psycopg
from faststream import Context

from fairlead_eventlog.condition.operations import OperationsReader
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.client import open_client
from fairlead_eventlog.jetstream.local_requests import LocalRequests
from fairlead_eventlog.quotas.stored_bytes import CountsBytes, StoredBytes
from fairlead_projector import database
from fairlead_projector.alarms.operations_report import OPERATIONS, report_operations
from fairlead_projector.database import Connection, query
from fairlead_projector.settings import ProjectorSettings
from fairlead_schema import subjects
from fairlead_schema.commands.quota import AskTenantTotals, QuotaLimits, TenantTotals
from fairlead_schema.errors import Refused, ServiceUnavailable
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import TenantId
from fairlead_service.rpc.answers import Refusals
from fairlead_service.rpc.server import ANY_TENANT, RpcServer, TenantParam

TOTALS: Final = "tenant_totals"
# The server lists every stored output of a tenant for its sum, so the sum is kept for a while.
OUTPUTS_FRESH_S: Final = 5.0
TENANTS_MAX: Final = 10_000

LimitsOf: TypeAlias = Callable[[TenantId], QuotaLimits]


class TenantTotalsStore:
    """Reads the totals of tenants through one connection, which it opens again after a failure."""

    def __init__(
        self,
        dsn: str,
        outputs: CountsBytes,
        limits: LimitsOf = lambda _tenant: QuotaLimits(),
        principal_limits: LimitsOf = lambda _tenant: QuotaLimits(),
    ) -> None:
        self._dsn = dsn
        self._outputs = outputs
        self._limits = limits
        self._principal_limits = principal_limits
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._stored: dict[TenantId, tuple[float, StoredBytes]] = {}

    async def load(self, tenant: TenantId) -> TenantTotals:
        """The totals of a tenant now. Raises psycopg.Error."""
        stored = await self._count_outputs(tenant)
        row = await self._fetch("tenant_totals", tenant=tenant)
        cost, tokens, sessions, log_bytes, turns, calls, pending = row
        return TenantTotals(
            cost=float(cost),
            tokens=int(tokens),
            sessions=sessions,
            log_bytes=log_bytes,
            output_bytes=stored.total,
            turns=turns,
            calls=calls,
            pending=pending,
            allowed=self._limits(tenant),
        )

    async def load_principal(self, tenant: TenantId, principal: PrincipalName) -> TenantTotals:
        """The totals of the sessions that a principal created. Raises psycopg.Error."""
        stored = await self._count_outputs(tenant)
        row = await self._fetch("principal_totals", tenant=tenant, principal=principal)
        sessions, log_bytes, pending, turns, calls = row
        return TenantTotals(
            principal=principal,
            sessions=sessions,
            log_bytes=log_bytes,
            output_bytes=stored.of(principal),
            turns=turns,
            calls=calls,
            pending=pending,
            allowed=self._principal_limits(tenant),
        )

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _fetch(self, name: str, **parameters: str) -> tuple[Any, ...]:
        async with self._lock:
            try:
                return await self._fetch_once(name, parameters)
            except psycopg.OperationalError:
                # A connection to an earlier server fails once. A second failure is the caller's.
                await self.close()
                return await self._fetch_once(name, parameters)

    async def _fetch_once(self, name: str, parameters: dict[str, str]) -> tuple[Any, ...]:
        if self._connection is None:
            self._connection = await database.connect(self._dsn)
        cursor = await self._connection.execute(query(name), parameters)
        row = await cursor.fetchone()
        assert row is not None, "sums are always one row"
        return row

    async def _count_outputs(self, tenant: TenantId) -> StoredBytes:
        """The bytes of stored outputs, some seconds old. The last sum holds while NATS is away."""
        now = time.monotonic()
        counted_at, stored = self._stored.get(tenant, (now - OUTPUTS_FRESH_S, StoredBytes()))
        if now - counted_at < OUTPUTS_FRESH_S:
            return stored
        try:
            stored = await self._outputs.stored_bytes(tenant)
        except LogError:
            return stored
        if len(self._stored) >= TENANTS_MAX:
            self._stored.clear()
        self._stored[tenant] = (now, stored)
        return stored


TotalsDep: TypeAlias = Annotated[TenantTotalsStore, Context(TOTALS)]


@asynccontextmanager
async def serve_usage(
    settings: ProjectorSettings,
    outputs: CountsBytes,
    operations: OperationsReader,
    local: LocalRequests | None = None,
) -> AsyncIterator[None]:
    """Answer usage requests until the block ends."""
    totals = TenantTotalsStore(
        settings.postgres_dsn, outputs, settings.quotas, settings.principal_quotas
    )
    server = usage_server(settings.nats, totals, operations, local)
    await server.start()
    try:
        yield
    finally:
        await server.stop()
        await totals.close()


def usage_server(
    address: NatsAddress,
    totals: TenantTotalsStore,
    operations: OperationsReader,
    local: LocalRequests | None = None,
) -> RpcServer:
    """The server of the projector's verbs: `spending` and `operations`."""
    server = RpcServer(
        partial(open_client, address), name="projector", refusals=REFUSALS, local=local
    )
    server.provide(TOTALS, totals)
    server.serve("spending", subjects.tenant_usage(ANY_TENANT), tenant_totals)
    server.provide(OPERATIONS, operations)
    server.serve("operations", subjects.operations(ANY_TENANT), report_operations)
    return server


async def tenant_totals(
    totals: TotalsDep, tenant: TenantParam, command: AskTenantTotals
) -> TenantTotals:
    """`spending`: what all sessions of a tenant have and use, or those that a principal created."""
    if command.principal is None:
        return await totals.load(tenant)
    return await totals.load_principal(tenant, command.principal)


def _unavailable(error: psycopg.Error) -> Refused:
    return ServiceUnavailable(f"Read models are unavailable: {error}", service="postgres")


def _log_unavailable(error: LogError) -> Refused:
    return ServiceUnavailable(f"The log is not available: {error}", service="nats")


REFUSALS: Final[Refusals] = {psycopg.Error: _unavailable, LogError: _log_unavailable}
