"""Answers how much a tenant has used, so that runners can keep its budget."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Final, TypeAlias

import psycopg
from faststream import Context

from fairlead_projector import database
from fairlead_projector.database import query
from fairlead_schema import subjects
from fairlead_schema.errors import Refused, ServiceUnavailable
from fairlead_schema.model import Model
from fairlead_service.rpc.answers import Refusals
from fairlead_service.rpc.server import ANY_TENANT, RpcServer, TenantParam

DSN: Final = "dsn"
DsnDep: TypeAlias = Annotated[str, Context(DSN)]


class AskSpending(Model):
    """An empty request; its subject names the tenant."""


class TenantSpending(Model):
    """The sum over all sessions of a tenant."""

    cost: float
    tokens: int


@asynccontextmanager
async def serve_usage(nats_url: str, dsn: str) -> AsyncIterator[None]:
    """Answer usage requests until the block ends."""
    server = usage_server(nats_url, dsn)
    await server.start()
    try:
        yield
    finally:
        await server.stop()


def usage_server(nats_url: str, dsn: str) -> RpcServer:
    """The server of the verb `spending`, the only verb of the projector."""
    server = RpcServer(nats_url, name="projector", refusals=REFUSALS)
    server.provide(DSN, dsn)
    server.serve("spending", subjects.tenant_usage(ANY_TENANT), tenant_spending)
    return server


async def tenant_spending(
    dsn: DsnDep,
    tenant: TenantParam,
    command: AskSpending,  # noqa: ARG001 - the server parses and documents it
) -> TenantSpending:
    """`spending`: what all sessions of a tenant have used."""
    async with await database.connect(dsn) as connection:
        cursor = await connection.execute(query("tenant_spending"), {"tenant": tenant})
        row = await cursor.fetchone()
    assert row is not None, "a sum is always one row"
    return TenantSpending(cost=float(row[0]), tokens=int(row[1]))


def _unavailable(error: psycopg.Error) -> Refused:
    return ServiceUnavailable(f"Read models are unavailable: {error}", service="postgres")


REFUSALS: Final[Refusals] = {psycopg.Error: _unavailable}
