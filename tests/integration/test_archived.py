"""D16, D17: archived sessions, moves and usage through real processes, as a caller sees them."""

import json
from typing import Any

import pytest

from fairlead_testing.session_driver import events_of, say, wait_until_settled
from fairlead_testing.stack import Stack, check_log

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

SLOW = "[[sim: chunks=400 delay_ms=50]] take your time"


async def list_ids(up: Stack, **query: str) -> set[str]:
    answer = await up.http.get("/api/session", params={"limit": "100", **query})
    assert answer.status_code == 200, answer.text
    return {item["id"] for item in answer.json()["data"]}


async def info(up: Stack, session: str) -> dict[str, Any]:
    told: dict[str, Any] = (await up.http.get(f"/api/session/{session}")).json()["data"]
    return told


async def test_archiving_stops_a_turn_and_refuses_work_until_it_is_undone(up: Stack) -> None:
    """D16: the running turn is interrupted, lists hide the session, a prompt is a conflict."""
    session = await up.session()
    await say(up, session, SLOW)
    await up.until(session, "step.started")

    archived = await up.http.delete(f"/api/session/{session}")
    assert archived.is_success, archived.text
    log = await wait_until_settled(up, session)
    check_log(log)
    assert not events_of(log, "step.ended"), "the turn was interrupted"
    assert session not in await list_ids(up)
    assert session in await list_ids(up, archived="true")
    assert session in await list_ids(up, archived="only")

    prompt = {"prompt": {"text": "more"}}
    refused = await up.http.post(f"/api/session/{session}/prompt", json=prompt)
    assert refused.status_code == 409, refused.text
    assert "ConflictError" in refused.text

    undone = await up.http.post(f"/api/session/{session}/unarchive", json={})
    assert undone.is_success, undone.text
    assert session in await list_ids(up)
    await say(up, session, "hello again")
    assert events_of(await up.until(session, "step.ended"), "step.ended")


async def test_a_move_to_a_missing_directory_is_refused(up: Stack) -> None:
    """D17: the session stays where it was."""
    session = await up.session()
    before = (await info(up, session))["location"]

    moved = await up.http.post(
        f"/api/session/{session}/move", json={"location": {"directory": "/no/such/directory"}}
    )

    assert moved.status_code == 400, moved.text
    assert "/no/such/directory" in moved.text
    assert (await info(up, session))["location"] == before


async def test_usage_is_told_by_model_and_with_sub_agents(up: Stack) -> None:
    """D17: the models of a session, and what its sub-agents used beside it."""
    session = await up.session()
    work = json.dumps({"agent": "general", "description": "work", "prompt": "count the sails"})
    await say(up, session, f"[[sim: tool=task args='{work}' ; answer=done]] go")
    log = await wait_until_settled(up, session)

    (child,) = events_of(log, "child.finished")
    told = await info(up, session)
    (usage,) = told["models"]
    assert usage["requests"] == len(events_of(log, "step.ended")) == 2
    assert told["children"]["tokens"] == child.tokens > 0
    assert (await info(up, child.session_id))["parentID"] == session
