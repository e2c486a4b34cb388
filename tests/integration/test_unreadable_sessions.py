"""Sessions with forged logs in a whole stack: what can be read is read, and each can be purged (D7)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import psycopg
import pytest

from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.ports import START
from fairlead_eventlog.streams import log_stream
from fairlead_schema import subjects
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

TIMEOUT_S = 30.0
TABLES = ("session", "session_event", "session_message", "session_input")


def _event(seq: int, type_: str = "session.archived", version: int = 1) -> dict[str, Any]:
    return {
        "id": ids.event_id(),
        "seq": seq,
        "type": type_,
        "version": version,
        "time": 1,
        "data": {},
    }


async def _forge(up: Stack, session: str, kind: str) -> int:
    """Store what no release of today writes. Returns the seq of the last event before it."""
    at = Address(DEFAULT_TENANT, session)
    head = await up.eventlog.log.head(at)
    payload = {
        "newer": orjson.dumps(
            {"id": ids.commit_id(), "events": [_event(head.seq + 1, "from.the.future", 9)]}
        ),
        "gap": orjson.dumps({"id": ids.commit_id(), "events": [_event(head.seq + 5)]}),
        "rubbish": b"\xff no commit",
    }[kind]
    async with open_link(up.up.operator, name="test") as link:
        await link.store(subjects.log(at), payload)
    return head.seq


async def _is_gone(up: Stack, at: Address, output: str) -> bool:
    async with await psycopg.AsyncConnection.connect(up.up.postgres_admin) as database:
        for table in TABLES:
            query = f"select 1 from read.{table} where session_id = %s"  # noqa: S608 - a constant
            rows = await database.execute(query, (at.session_id,))
            if await rows.fetchone() is not None:
                return False
    async with open_link(up.up.operator, name="test") as link:
        stream = log_stream(subjects.shard(at.session_id))
        messages, _ = await link.read_subject(stream, subjects.log(at), first=1, batch=10)
    stored = await up.http.get(f"/api/tool-output/{output}")
    return (
        len(messages) == 1
        and b"session.purged" in messages[0].payload
        and await up.eventlog.snapshots.load(at) is None
        and stored.status_code == httpx.codes.NOT_FOUND
    )


@pytest.mark.parametrize("door", ["http", "nats"])
@pytest.mark.parametrize("kind", ["newer", "gap", "rubbish"])
async def test_a_session_that_nobody_can_read_is_purged_with_all_it_left(
    up: Stack, kind: str, door: str
) -> None:
    """D7, H-29: log, rows, snapshot and outputs."""
    session, output = await up.session(), ids.output_id()
    at = Address(DEFAULT_TENANT, session)
    await up.client.prompt(session, "say: something")
    await up.wait_until_rested(session)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"kept"

    await up.eventlog.outputs.put(at, output, pieces(), mime="text/plain")
    await _forge(up, session, kind)

    if door == "http":
        answer = await up.http.delete(f"/api/session/{session}", params={"purge": "true"})
        assert answer.status_code == httpx.codes.NO_CONTENT, answer.text
    else:
        told = await up.ask("session.delete", {"sessionID": session})
        assert told["data"]["sessionID"] == session

    assert await up.eventlog.log.head(at) == START
    missing = await up.http.get(f"/api/session/{session}")
    assert (missing.status_code, missing.json()["_tag"]) == (404, "SessionNotFoundError")
    async with asyncio.timeout(TIMEOUT_S):
        while not await _is_gone(up, at, output):
            await asyncio.sleep(0.1)
