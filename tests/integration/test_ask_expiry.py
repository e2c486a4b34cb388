"""Asks that nobody answers in time, through real processes: declined once, and the session goes on."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from fairlead_testing.session_driver import (
    count_runs,
    events_of,
    probe_prompt,
    probe_stack,
    say,
    wait_until_settled,
)
from fairlead_testing.stack import Stack, event_types

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

CONFIG = """
permissions = [ { action = "probe_once", resource = "*", effect = "ask" } ]

[asks]
expire_s = 0.5
"""
QUESTION = (
    '{"questions": [{"question": "Red or blue?", "header": "Colour", '
    '"options": [{"label": "red", "description": "r"}, {"label": "blue", "description": "b"}]}]}'
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """A stack whose asks expire."""
    async with probe_stack(more=CONFIG) as running:
        yield running


async def test_a_permission_that_nobody_gives_expires(up: Stack) -> None:
    """K-19: the call never runs, the session rests, and a late answer finds nothing."""
    session = await up.session()
    await say(up, session, probe_prompt("expired"))

    await up.until(session, "permission.replied")
    log = await wait_until_settled(up, session)

    (asked,) = events_of(log, "permission.asked")
    (replied,) = events_of(log, "permission.replied")
    assert (replied.request_id, replied.reply) == (asked.request.id, "reject")
    assert len(events_of(log, "tool.failed")) == 1
    assert not events_of(log, "tool.started")
    assert count_runs(up, "expired") == 0
    path = f"/api/session/{session}/permission/{asked.request.id}/reply"
    late = await up.http.post(path, json={"reply": "once"})
    assert late.status_code == httpx.codes.NOT_FOUND
    assert event_types(await up.events(session)).count("permission.replied") == 1


async def test_a_question_that_nobody_answers_expires(up: Stack) -> None:
    """K-19: the question is rejected, and the next prompt is answered."""
    session = await up.session()
    await say(up, session, f"[[sim: tool=question args='{QUESTION}' ; answer=done]] go")

    await up.until(session, "question.rejected")
    log = await wait_until_settled(up, session)
    await say(up, session, "and now without a question")
    after = await wait_until_settled(up, session)

    assert len(events_of(log, "question.asked")) == len(events_of(log, "question.rejected")) == 1
    assert events_of(after, "text.ended")[-1].text.endswith("and now without a question")
