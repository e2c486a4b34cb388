"""Routes that fold the session from the log: wait, tasks, explanation."""

import asyncio

import httpx
import pytest

from fairlead_gateway.runtime import Runtime
from fairlead_schema.context import BaselinePart, SnapshotEntry
from fairlead_schema.events import (
    ContextInitialised,
    ExecutionClaimed,
    ExecutionReleased,
    PromptAdmitted,
    SessionPurged,
    TodoUpdated,
)
from fairlead_schema.events.asks import Todo
from fairlead_schema.prompt import Prompt
from services.gateway.tests.conftest import Append

AT = "/api/session/ses_1"
ADMITTED = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="hi"), delivery="steer")
CLAIMED = ExecutionClaimed(generation=1, runner="run_1")
IDLE = ExecutionReleased(generation=1, reason="idle")


async def test_c25_wait_answers_when_the_session_is_at_rest(
    client: httpx.AsyncClient, append: Append
) -> None:
    await append("ses_1", ADMITTED)
    request = asyncio.create_task(client.post(f"{AT}/wait"))
    await asyncio.sleep(0.01)
    assert not request.done()
    await append("ses_1", CLAIMED)
    await append("ses_1", IDLE)

    answer = await asyncio.wait_for(request, 5)

    assert (answer.status_code, answer.content) == (204, b"")


async def test_c25_wait_gives_up_in_time(client: httpx.AsyncClient, append: Append) -> None:
    await append("ses_1", ADMITTED)

    answer = await client.post(f"{AT}/wait?timeout_s=0.02")

    assert answer.status_code == 503
    assert answer.json()["service"] == "session.wait"


async def test_a_gateway_that_ends_lets_nobody_wait(
    client: httpx.AsyncClient, append: Append, runtime: Runtime
) -> None:
    await append("ses_1", ADMITTED)
    runtime.shutdown.set()

    answer = await asyncio.wait_for(client.post(f"{AT}/wait"), 5)

    assert answer.status_code == 503


async def test_todos_come_from_the_log(client: httpx.AsyncClient, append: Append) -> None:
    todo = {"content": "mend it", "status": "pending", "priority": "high"}
    await append("ses_1", TodoUpdated(todos=(Todo.model_validate(todo),)))

    answer = await client.get(f"{AT}/todo")

    assert answer.json() == {"data": [todo]}


async def test_explain_says_why_in_a_sentence_and_as_values(
    client: httpx.AsyncClient, append: Append
) -> None:
    await append("ses_1", ADMITTED, CLAIMED)

    data = (await client.get(f"{AT}/explain")).json()["data"]

    assert (data["state"], data["owner"]) == ("running", "run_1")
    assert data["reason"]
    assert data["since"] > 0


@pytest.mark.parametrize("path", ["", "/todo", "/explain", "/history", "/stream", "/message"])
async def test_a_purged_session_is_not_found(
    client: httpx.AsyncClient, append: Append, path: str
) -> None:
    """H-29: its last word is in the log, and nobody can read the session by it."""
    await append("ses_1", ADMITTED)
    await append("ses_1", SessionPurged())

    assert (await client.get(AT + path)).json()["_tag"] == "SessionNotFoundError"
    assert (await client.post(f"{AT}/wait")).json()["_tag"] == "SessionNotFoundError"


async def test_the_epoch_shows_what_the_model_is_told(
    client: httpx.AsyncClient, append: Append
) -> None:
    await append("ses_1")
    empty = await client.get(f"{AT}/epoch")
    part = BaselinePart(key="core/date", text="Today is Monday.")
    snapshot = {"core/date": SnapshotEntry(value="2026-01-05"), "core/env": SnapshotEntry(value=1)}
    await append("ses_1", ContextInitialised(baseline=(part,), snapshot=snapshot))

    answer = await client.get(f"{AT}/epoch")

    assert (empty.status_code, empty.json()["data"]) == (200, {"baseline": [], "sources": []})
    assert answer.json()["data"] == {
        "seq": 2,
        "baseline": [{"key": "core/date", "text": "Today is Monday."}],
        "sources": ["core/date", "core/env"],
    }
    assert (await client.get("/api/session/ses_unknown/epoch")).status_code == 404
