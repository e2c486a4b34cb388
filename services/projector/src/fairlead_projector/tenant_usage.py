"""Answers what a tenant has used, for runners that must not exceed a limit."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from pydantic import BaseModel
from pydantic_core import to_json

from fairlead_projector import database
from fairlead_projector.database import query
from fairlead_schema import subjects
from fairlead_schema.errors import ServiceUnavailable
from fairlead_service.rpc import RpcServer

log = logging.getLogger(__name__)


class AskSpending(BaseModel):
    """An empty request; its subject names the tenant."""


@asynccontextmanager
async def answering(nats_url: str, dsn: str) -> AsyncIterator[None]:
    """Serve the sums for the length of a block."""

    async def reply(subject: str, _body: bytes) -> bytes:
        return await spent(dsn, subject.rpartition(".")[2])

    carrier = RpcServer(nats_url)
    carrier.respond(
        subjects.tenant_usage("*"),
        queue="projector",
        title="spending",
        command=AskSpending,
        reply=reply,
    )
    await carrier.start()
    try:
        yield
    finally:
        await carrier.stop()


async def spent(dsn: str, tenant: str) -> bytes:
    """The sum over a tenant's sessions, or a typed error."""
    try:
        async with await database.connect(dsn) as connection:
            cursor = await connection.execute(query("tenant_spending"), {"tenant": tenant})
            row = await cursor.fetchone()
    except psycopg.Error as error:
        away = ServiceUnavailable(f"Read models are unavailable: {error}", service="postgres")
        return to_json({"error": away.body.wire()})
    assert row is not None, "a sum is always one row"
    return to_json({"data": {"cost": float(row[0]), "tokens": int(row[1])}})
