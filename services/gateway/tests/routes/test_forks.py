"""`POST …/fork` and `GET …/children`: sessions that come from a session."""

import httpx

from services.gateway.tests.conftest import Append, FakeIngest, Project

FORK = "/api/session/ses_1/fork"
SESSION = {
    "id": "ses_2",
    "projectID": "p",
    "title": "t",
    "location": {"directory": "/w"},
    "time": {"created": 1, "updated": 1},
}


async def test_a_fork_names_its_session_so_that_it_can_be_repeated(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    ingest.serve("session.fork", {"data": SESSION})
    key = {"idempotency-key": "order-7"}

    answer = await client.post(FORK, json={"messageID": "msg_1", "id": "ses_2"})
    for _ in range(2):
        await client.post(FORK, json={}, headers=key)
    await client.post(FORK, json={})

    assert (answer.status_code, answer.json()["data"]["id"]) == (200, "ses_2")
    named, one, two, other = ingest.commands
    assert named == {"sessionID": "ses_1", "messageID": "msg_1", "id": "ses_2"}
    assert one == two
    assert one["id"] != other["id"]
    assert other["id"].startswith("ses_")


async def test_a_bad_fork_is_refused(client: httpx.AsyncClient, append: Append) -> None:
    await append("ses_1")
    bad = await client.post(FORK, json={"messageID": "nonsense"})
    empty = await client.post(FORK, json={"id": None})

    assert (bad.status_code, bad.json()["field"]) == (400, "messageID")
    assert empty.status_code == 400


async def test_children_are_listed_in_pages_of_their_parent(
    client: httpx.AsyncClient, append: Append, project: Project
) -> None:
    for number, parent in ((1, None), (2, "ses_1"), (3, "ses_1"), (4, "ses_2")):
        await append(f"ses_{number}")
        project(f"ses_{number}", seq=1, created=number, parent_id=parent)

    first = (await client.get("/api/session/ses_1/children", params={"limit": "1"})).json()
    cursor = first["cursor"]["next"]
    second = (await client.get(f"/api/session/ses_1/children?cursor={cursor}")).json()
    foreign = await client.get(f"/api/session/ses_2/children?cursor={cursor}")
    missing = await client.get("/api/session/ses_nobody/children")

    assert [item["id"] for item in first["data"]] == ["ses_3"]
    assert [item["id"] for item in second["data"]] == ["ses_2"]
    assert (foreign.status_code, foreign.json()["_tag"]) == (400, "InvalidCursorError")
    assert missing.status_code == 404
