"""What `ask` raises when nobody answers: over HTTP and over NATS, at once, and never nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import BaseModel

from fairlead_client import (
    AnswerMisfit,
    AsyncFairlead,
    NatsLogin,
    PromptFailed,
    PromptUnanswered,
    PromptWithdrawn,
)
from fairlead_schema.errors import Conflict, SessionNotFound
from fairlead_schema.session_info import SessionInfo
from fairlead_testing.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

HANG_S = 90
SILENCE_S = 10
"""Shorter than any heartbeat: nobody waits for a silence to notice an end."""
SLOW = "[[sim: chunks=200 delay_ms=50]]"
READ = '[[sim: tool=read args=\'{"path":"/etc/hostname"}\' ; answer=done]] go'
QUESTION = json.dumps({"questions": [{"question": "Which?", "header": "Which", "options": []}]})


class City(BaseModel):
    """What no answer of these tests is."""

    name: str


@pytest_asyncio.fixture(loop_scope="module", params=["http", "nats"])
async def fairlead(up: Stack, request: pytest.FixtureRequest) -> AsyncIterator[AsyncFairlead]:
    local = up.up.local_client
    assert local.nkey_file is not None
    login = NatsLogin(local.url, nkey_file=Path(local.nkey_file))
    is_nats = request.param == "nats"
    client = (
        AsyncFairlead.over_nats(login) if is_nats else AsyncFairlead(up.up.http, token=up.up.token)
    )
    async with client, asyncio.timeout(HANG_S):
        yield client


async def until(fairlead: AsyncFairlead, session: SessionInfo, type_: str) -> None:
    async for event in fairlead.follow(session, after=0):
        if event.type == type_:
            return


async def ask_until(
    fairlead: AsyncFairlead, text: str, type_: str
) -> tuple[SessionInfo, "asyncio.Task[object]"]:
    """A session that has come to an event of this type, and its caller, who waits."""
    session = await fairlead.create()
    asking: asyncio.Task[object] = asyncio.create_task(fairlead.ask(session, text))
    await until(fairlead, session, type_)
    return session, asking


async def error_of(asking: "asyncio.Task[object]") -> BaseException | None:
    """What the caller gets, within a silence."""
    done, _pending = await asyncio.wait({asking}, timeout=SILENCE_S)
    assert done, "the caller still waits"
    return asking.exception()


async def test_a_turn_that_somebody_interrupts(fairlead: AsyncFairlead) -> None:
    session, asking = await ask_until(fairlead, SLOW, "text.delta")
    await fairlead.interrupt(session)

    assert isinstance(await error_of(asking), PromptFailed)


async def test_a_session_that_is_erased(fairlead: AsyncFairlead) -> None:
    session, asking = await ask_until(fairlead, READ, "permission.v2.asked")
    await fairlead.erase(session)

    assert isinstance(await error_of(asking), SessionNotFound)


@pytest.mark.parametrize(
    ("text", "asked", "code"),
    [
        (READ, "permission.v2.asked", "interrupted"),
        (READ, "permission.v2.asked", "archived"),
        (f"[[sim: tool=question args='{QUESTION}']] go", "question.v2.asked", "declined"),
    ],
    ids=["interrupted", "archived", "dismissed"],
)
async def test_a_session_that_waits_for_a_person_and_gets_none(
    up: Stack, fairlead: AsyncFairlead, text: str, asked: str, code: str
) -> None:
    session, asking = await ask_until(fairlead, text, asked)
    match code:
        case "interrupted":
            await fairlead.interrupt(session)
        case "archived":
            await up.client.request("DELETE", f"/api/session/{session.id}")
        case _:
            (question,) = await fairlead.questions(session)
            await fairlead.answer(question, None)
    error = await error_of(asking)

    assert isinstance(error, PromptUnanswered)
    assert error.code == code


async def test_a_session_that_is_archived_already(up: Stack, fairlead: AsyncFairlead) -> None:
    session = await fairlead.create()
    await up.client.request("DELETE", f"/api/session/{session.id}")

    with pytest.raises(Conflict, match="archived"):
        await fairlead.ask(session, "Hello?")


async def test_a_budget_that_is_used_up(up: Stack, fairlead: AsyncFairlead) -> None:
    session = await fairlead.create()
    await up.client.request("POST", f"/api/session/{session.id}/budget", json={"tokens": 1})
    await fairlead.ask(session, "The first turn is never cut.")

    with pytest.raises(PromptUnanswered) as raised:
        await fairlead.ask(session, "And now?")
    assert raised.value.code == "over-budget"


async def test_a_prompt_that_somebody_withdraws_or_edits(
    up: Stack, fairlead: AsyncFairlead
) -> None:
    """The answer to an edited prompt answers the new words."""
    session, working = await ask_until(fairlead, "[[sim: chunks=30 delay_ms=30]]", "text.delta")
    ids = [f"msg_{verb}_{session.id[-8:]}" for verb in ("withdrawn", "edited")]
    withdrawn, edited = (
        asyncio.create_task(fairlead.ask(session, "Later", id=id_, delivery="queue")) for id_ in ids
    )
    while len(await fairlead.pending(session)) < len(ids):
        await asyncio.sleep(0.02)
    await fairlead.cancel(session, ids[0])
    changed = {"prompt": {"text": "Sooner"}}
    await up.client.request("PATCH", f"/api/session/{session.id}/input/{ids[1]}", json=changed)
    with pytest.raises(PromptWithdrawn):
        await withdrawn

    assert await error_of(working) is None
    assert (await edited).text == "You said: Sooner"


async def test_a_provider_that_refuses_for_good(fairlead: AsyncFairlead) -> None:
    with pytest.raises(PromptFailed, match="no such model") as raised:
        await fairlead.ask(await fairlead.create(), '[[sim: status=400 error="no such model"]]')
    assert raised.value.error["code"] == "invalid-request"


async def test_a_schema_that_no_answer_fits(fairlead: AsyncFairlead) -> None:
    misfits = " ; ".join(["tool=structured_output args='{\"name\": 7}'"] * 8)

    with pytest.raises(AnswerMisfit, match="name"):
        await fairlead.ask(await fairlead.create(), f"[[sim: {misfits}]] Which?", schema=City)
