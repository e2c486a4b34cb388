"""What a caller did is in what it lists next, or the answer says that it is stale (D3)."""

import asyncio

import httpx

from fairlead_gateway.reads.own_writes import KEEP_S, WRITES_MAX, OwnWrites
from fairlead_gateway.runtime import Runtime
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import FakeIngest, Project

AT = Address(DEFAULT_TENANT, "ses_1")
SESSION = {
    "id": "ses_1",
    "projectID": "global",
    "cost": 0,
    "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    "time": {"created": 1, "updated": 1},
    "title": "t",
    "location": {"directory": "/work"},
}


async def test_a_list_shows_what_its_caller_just_created(
    client: httpx.AsyncClient, ingest: FakeIngest, project: Project, runtime: Runtime
) -> None:
    """D3: the list waits a moment for the projector."""
    ingest.serve("session.create", {"data": SESSION})
    object.__setattr__(runtime.settings, "fresh_timeout_s", 5.0)
    await client.post("/api/session", json={"id": "ses_1"})

    listing = asyncio.create_task(client.get("/api/session"))
    await asyncio.sleep(0.02)
    assert not listing.done()
    project("ses_1", seq=1)
    answer = await asyncio.wait_for(listing, 5)

    assert [item["id"] for item in answer.json()["data"]] == ["ses_1"]
    assert "fairlead-stale" not in answer.headers


async def test_a_list_that_cannot_wait_longer_says_so(
    client: httpx.AsyncClient, ingest: FakeIngest, project: Project
) -> None:
    """D3: and it is asked again for nothing once the projector has caught up."""
    project("ses_1", seq=1)
    ingest.serve("session.archive", {"data": {"sessionID": "ses_1", "seq": 4}})
    await client.delete("/api/session/ses_1")

    for path in ("/api/session", "/api/session/active"):
        assert (await client.get(path)).headers["fairlead-stale"] == "true"
    project("ses_1", seq=4)
    for path in ("/api/session", "/api/session/active"):
        assert "fairlead-stale" not in (await client.get(path)).headers


async def test_a_list_waits_until_a_purged_session_is_gone(
    client: httpx.AsyncClient, ingest: FakeIngest, project: Project, read: MemoryReadModel
) -> None:
    """D3, H-29."""
    project("ses_1", seq=1)
    ingest.serve("session.delete", {"data": {"sessionID": "ses_1", "seq": 2}})
    await client.delete("/api/session/ses_1", params={"purge": "true"})

    assert (await client.get("/api/session")).headers["fairlead-stale"] == "true"
    del read.rows[AT]
    answer = await client.get("/api/session")
    assert (answer.json()["data"], "fairlead-stale" in answer.headers) == ([], False)


async def test_the_writes_of_others_and_old_ones_delay_nobody(read: MemoryReadModel) -> None:
    now = 0.0
    writes = OwnWrites(clock=lambda: now)
    writes.note("key:a", AT, 1)

    assert await writes.wait_until_visible("key:b", read, timeout_s=0)
    assert not await writes.wait_until_visible("key:a", read, timeout_s=0)
    now = KEEP_S + 1
    assert await writes.wait_until_visible("key:a", read, timeout_s=0)


async def test_what_is_remembered_is_bounded(read: MemoryReadModel) -> None:
    writes = OwnWrites()
    for number in range(WRITES_MAX + 50):
        writes.note("key:a", Address(DEFAULT_TENANT, f"ses_{number}"), 1)

    assert len(writes._writes["key:a"]) == WRITES_MAX  # noqa: SLF001
    assert not await writes.wait_until_visible("key:a", read, timeout_s=0)
