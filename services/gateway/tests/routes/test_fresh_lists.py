"""A list right after a create contains the new session, or says that it may lack it."""

import asyncio
from typing import Any

import httpx
import pytest

from fairlead_gateway.reads import own_writes
from services.gateway.tests.conftest import FakeIngest, Project

CREATED: dict[str, Any] = {
    "id": "ses_new",
    "projectID": "p",
    "title": "t",
    "location": {"directory": "/w"},
    "time": {"created": 9, "updated": 9},
    "cost": 0,
    "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
}


async def create(client: httpx.AsyncClient, ingest: FakeIngest) -> None:
    ingest.serve("session.create", {"data": CREATED})
    answer = await client.post("/api/session", json={})
    assert answer.status_code == 200, answer.text


async def test_a_list_waits_for_a_session_that_was_just_created(
    client: httpx.AsyncClient, ingest: FakeIngest, project: Project
) -> None:
    """A20: also on the second page of a list that began before."""
    project("ses_old")
    await create(client, ingest)
    asyncio.get_running_loop().call_later(0.005, project, "ses_new")

    first = await client.get("/api/session", params={"limit": 1, "order": "asc"})
    second = await client.get("/api/session", params={"cursor": first.json()["cursor"]["next"]})

    listed = [item["id"] for answer in (first, second) for item in answer.json()["data"]]
    assert sorted(listed) == ["ses_new", "ses_old"]
    assert "fairlead-stale" not in second.headers


async def test_a_list_that_lacks_a_new_session_says_so_for_some_seconds(
    client: httpx.AsyncClient, ingest: FakeIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(client, ingest)

    lacking = await client.get("/api/session")
    monkeypatch.setattr(own_writes, "KEEP_S", -1.0)
    later = await client.get("/api/session")

    assert (lacking.json()["data"], lacking.headers["fairlead-stale"]) == ([], "true")
    assert "fairlead-stale" not in later.headers
