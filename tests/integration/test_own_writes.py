"""Read your own writes in a whole stack, in lists too (D3)."""

import pytest

from fairlead_testing.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


async def test_what_a_caller_did_is_in_what_it_lists_next(up: Stack) -> None:
    """D3: a created session is there, an edited one as it is now, a purged one is gone."""
    created = ""
    for _ in range(20):
        created = (await up.http.post("/api/session", json={})).json()["data"]["id"]
        listed = await up.http.get("/api/session", params={"limit": 3})
        ids = [session["id"] for session in listed.json()["data"]]
        assert created in ids or listed.headers.get("fairlead-stale") == "true"

    await up.http.delete(f"/api/session/{created}", params={"purge": "true"})
    listed = await up.http.get("/api/session", params={"limit": 3})
    ids = [session["id"] for session in listed.json()["data"]]
    assert created not in ids or listed.headers.get("fairlead-stale") == "true"
