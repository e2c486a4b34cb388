"""Reads of sessions and messages from the read models."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from fairlead_schema.catalog import ModelRef
from fairlead_schema.location import LocationRef
from fairlead_schema.session_info import SessionTime
from services.gateway.tests.conftest import Append, Project

Messages = Callable[[int], dict[int, dict[str, Any]]]


async def _ids(client: httpx.AsyncClient, path: str, **params: str) -> tuple[list[str], Any]:
    answer = await client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["data"]], answer.json()["cursor"]


async def test_i40_a_session_shows_a_variant_and_no_empty_subpath(
    client: httpx.AsyncClient, append: Append, project: Project
) -> None:
    await append("ses_1")
    project("ses_1", model=ModelRef(id="fast", provider_id="acme"), subpath="")

    answer = await client.get("/api/session/ses_1")

    assert answer.json()["data"]["model"]["variant"] == "default"
    assert not {"subpath", "parentID", "agent", "revert"} & set(answer.json()["data"])
    assert "fairlead-stale" not in answer.headers


async def test_a_read_that_the_projection_lags_behind_says_so(
    client: httpx.AsyncClient, append: Append, project: Project
) -> None:
    await append("ses_1")
    project("ses_1", seq=0)

    for path in ("", "/message", "/context"):
        answer = await client.get(f"/api/session/ses_1{path}")

        assert (answer.status_code, answer.headers["fairlead-stale"]) == (200, "true")


async def test_a_session_that_is_not_projected_yet_is_unavailable_not_missing(
    client: httpx.AsyncClient, append: Append
) -> None:
    await append("ses_1")

    for path in ("", "/message/msg_1"):
        answer = await client.get(f"/api/session/ses_1{path}")

        assert (answer.status_code, answer.json()["service"]) == (503, "projector")


async def test_i38_a_message_of_another_session_is_not_found(
    client: httpx.AsyncClient, append: Append, project: Project, messages: Messages
) -> None:
    """Q-09: the tag is the one of the wire."""
    for session_id in ("ses_1", "ses_2"):
        await append(session_id)
        project(session_id)
    project("ses_1").messages.update(messages(1))

    own = await client.get("/api/session/ses_1/message/msg_1")
    foreign = await client.get("/api/session/ses_2/message/msg_1")

    assert own.json()["data"]["text"] == "text 1"
    assert foreign.status_code == 404
    assert foreign.json() == {
        "_tag": "MessageNotFoundError",
        "sessionID": "ses_2",
        "messageID": "msg_1",
        "message": "Message not found: msg_1",
    }


async def test_a_malformed_message_id_is_refused(client: httpx.AsyncClient, append: Append) -> None:
    await append("ses_1")

    answer = await client.get("/api/session/ses_1/message/nope")

    assert answer.status_code == 400
    assert (answer.json()["kind"], answer.json()["field"]) == ("Params", "messageID")


async def test_i21_messages_come_newest_first_and_page_both_ways(
    client: httpx.AsyncClient, append: Append, project: Project, messages: Messages
) -> None:
    """I-25: a page with messages has both cursors, even at the ends."""
    path = "/api/session/ses_1/message"
    await append("ses_1")
    project("ses_1").messages.update(messages(5))

    first, cursor = await _ids(client, path, limit="2")
    second, further = await _ids(client, path, cursor=cursor["next"])
    third, last = await _ids(client, path, cursor=further["next"])
    beyond, none = await _ids(client, path, cursor=last["next"])
    back, _ = await _ids(client, path, cursor=last["previous"])

    assert [first, second, third] == [["msg_5", "msg_4"], ["msg_3", "msg_2"], ["msg_1"]]
    assert (beyond, none) == ([], {})
    assert back == second


async def test_i22_items_keep_the_requested_order_in_both_directions(
    client: httpx.AsyncClient, append: Append, project: Project, messages: Messages
) -> None:
    path = "/api/session/ses_1/message"
    await append("ses_1")
    project("ses_1").messages.update(messages(5))

    _, cursor = await _ids(client, path, order="asc", limit="4")
    last, around = await _ids(client, path, cursor=cursor["next"])
    before, _ = await _ids(client, path, cursor=around["previous"], limit="2")

    assert (last, before) == (["msg_5"], ["msg_3", "msg_4"])


async def test_i23_a_cursor_is_refused_with_an_order_or_in_another_session(
    client: httpx.AsyncClient, append: Append, project: Project, messages: Messages
) -> None:
    for session_id in ("ses_1", "ses_2"):
        await append(session_id)
        project(session_id).messages.update(messages(3))
    _, cursor = await _ids(client, "/api/session/ses_1/message")

    texts = {}
    for session_id, params in {
        "ses_1": {"cursor": cursor["next"], "order": "asc"},
        "ses_2": {"cursor": cursor["next"]},
    }.items():
        answer = await client.get(f"/api/session/{session_id}/message", params=params)
        assert (answer.status_code, answer.json()["_tag"]) == (400, "InvalidCursorError")
        texts[session_id] = answer.json()["message"]

    assert texts == {"ses_1": "Cursor cannot be combined with order", "ses_2": "Invalid cursor"}


async def test_a_cursor_whose_message_is_gone_is_refused(
    client: httpx.AsyncClient, append: Append, project: Project, messages: Messages
) -> None:
    await append("ses_1")
    rows = project("ses_1")
    rows.messages.update(messages(1))
    _, cursor = await _ids(client, "/api/session/ses_1/message")
    rows.messages.clear()

    answer = await client.get("/api/session/ses_1/message", params={"cursor": cursor["next"]})

    assert (answer.status_code, answer.json()["_tag"]) == (400, "InvalidCursorError")


async def test_i29_context_begins_at_the_newest_compaction(
    client: httpx.AsyncClient, append: Append, project: Project, messages: Messages
) -> None:
    await append("ses_1")
    rows = project("ses_1")
    rows.messages.update(messages(3))
    compaction = {"reason": "auto", "summary": "s", "recent": "r", "time": {"created": 1}}
    rows.messages[15] = {"id": "msg_c1", "type": "compaction", **compaction}
    rows.messages[25] = {"id": "msg_c2", "type": "compaction", **compaction}

    answer = await client.get("/api/session/ses_1/context")

    assert [item["id"] for item in answer.json()["data"]] == ["msg_c2", "msg_3"]


async def test_i31_a_message_that_no_longer_decodes_fails_the_read_with_a_reference(
    client: httpx.AsyncClient, append: Append, project: Project
) -> None:
    await append("ses_1")
    project("ses_1").messages[10] = {"id": "msg_1", "type": "unheard-of"}

    answer = await client.get("/api/session/ses_1/message")

    assert (answer.status_code, answer.json()["_tag"]) == (500, "UnknownError")
    assert answer.json()["ref"].startswith("err_")


async def test_i26_sessions_are_listed_newest_first_and_filtered(
    client: httpx.AsyncClient, project: Project
) -> None:
    """I-27: a subpath is accepted and ignored."""
    project("ses_a", created=1, title="Fix the Parser", project_id="p1")
    project("ses_b", created=2, location=LocationRef(directory="/b", workspace_id="wrk_1"))
    project("ses_c", created=2, title="parser again")

    async def ids(**params: str) -> list[str]:
        return (await _ids(client, "/api/session", **params))[0]

    assert await ids() == ["ses_c", "ses_b", "ses_a"]
    assert await ids(order="asc", limit="2") == ["ses_a", "ses_b"]
    assert await ids(search="PARSER") == ["ses_c", "ses_a"]
    assert await ids(directory="/b") == await ids(workspace="wrk_1") == ["ses_b"]
    assert await ids(project="p1", subpath="ignored") == ["ses_a"]


async def test_i28_a_session_cursor_keeps_its_filters_whatever_the_query_says(
    client: httpx.AsyncClient, project: Project
) -> None:
    for index in range(1, 6):
        project(f"ses_{index}", created=index, title="kept" if index != 3 else "other")

    first, cursor = await _ids(client, "/api/session", search="kept", limit="2")
    second, around = await _ids(client, "/api/session", cursor=cursor["next"], search="x")
    back, _ = await _ids(client, "/api/session", cursor=around["previous"])
    beyond, none = await _ids(client, "/api/session", cursor=around["next"], order="asc")

    assert (first, second, back) == (["ses_5", "ses_4"], ["ses_2", "ses_1"], ["ses_5", "ses_4"])
    assert (beyond, none) == ([], {})


@pytest.mark.parametrize(
    ("path", "limit_max"),
    [
        ("/api/session", 1000),
        ("/api/session/ses_1/message", 200),
        ("/api/session/ses_1/history", 100),
    ],
)
async def test_a_limit_over_the_maximum_is_refused_with_the_maximum(
    client: httpx.AsyncClient, append: Append, project: Project, path: str, limit_max: int
) -> None:
    """I-23, I-26, I-36: the limits of docs/contracts.md."""
    await append("ses_1")
    project("ses_1")

    largest = await client.get(path, params={"limit": limit_max})

    assert largest.status_code == 200
    for limit in (limit_max + 1, 100_000):
        answer = await client.get(path, params={"limit": limit})

        assert (answer.status_code, answer.json()["_tag"]) == (400, "InvalidRequestError")
        assert (answer.json()["kind"], answer.json()["field"]) == ("Query", "limit")
        assert str(limit_max) in answer.json()["message"]


@pytest.mark.parametrize("cursor", ["", "x", "e30", "bnVsbA"])
async def test_a_broken_session_cursor_is_refused(client: httpx.AsyncClient, cursor: str) -> None:
    answer = await client.get("/api/session", params={"cursor": cursor})

    assert (answer.status_code, answer.json()["_tag"]) == (400, "InvalidCursorError")


async def test_active_sessions_are_those_with_an_owner(
    client: httpx.AsyncClient, project: Project
) -> None:
    project("ses_a").owner = "run_1"
    project("ses_b")

    answer = await client.get("/api/session/active")

    assert answer.json() == {"data": {"ses_a": {"type": "running"}}}


async def test_archived_sessions_and_children_are_listed_when_asked_for(
    client: httpx.AsyncClient, project: Project
) -> None:
    """D16, D17: and a cursor keeps what was asked for."""
    for number, session_id in enumerate(("ses_a", "ses_b", "ses_c"), start=1):
        archived = number if session_id == "ses_c" else None
        time = SessionTime(created=number, updated=number, archived=archived)
        project(session_id, parent_id="ses_a" if session_id == "ses_b" else None, time=time)

    async def ids(**query: str) -> list[str]:
        found, _cursor = await _ids(client, "/api/session", order="asc", **query)
        return found

    assert await ids() == ["ses_a", "ses_b"]
    assert await ids(archived="true") == ["ses_a", "ses_b", "ses_c"]
    assert await ids(archived="only") == ["ses_c"]
    assert await ids(roots="true") == ["ses_a"]
    assert await ids(parentID="ses_a") == ["ses_b"]
    first, cursor = await _ids(client, "/api/session", archived="true", limit="1")
    following, _cursor = await _ids(client, "/api/session", cursor=cursor["next"], limit="9")
    assert (first, following) == (["ses_c"], ["ses_b", "ses_a"])
    refused = await client.get("/api/session", params={"archived": "perhaps"})
    assert (refused.status_code, refused.json()["field"]) == (400, "archived")
