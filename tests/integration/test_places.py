"""Places of a runner: a session that only waits for others holds none."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from fairlead_testing.session_driver import events_of, probe_stack, say, wait_until_settled
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

PARENTS = 8
CHILDREN = 3
PLACES = 4


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """Two runners with two places each, which wait an hour for workers."""
    async with probe_stack(tools_wait_s=3600, runner=f"sessions_max = {PLACES // 2}") as running:
        yield running


def family_prompt() -> str:
    """A prompt whose answer hands work to three sub-agents at once."""
    work = {"agent": "general", "description": "some work", "prompt": "count the sails"}
    call = f"tool=task args='{json.dumps(work)}'"
    return f"[[sim: {' '.join([call] * CHILDREN)} ; answer=done]] go"


async def test_parents_of_sub_agents_hold_no_place(up: Stack) -> None:
    """D1: twice as many parents as places, and an unrelated session is answered among them."""
    parents = [await up.session() for _ in range(PARENTS)]
    for parent in parents:
        await say(up, parent, family_prompt())
    await up.answer_another_session()

    logs = await asyncio.gather(*(wait_until_settled(up, parent) for parent in parents))

    assert [len(events_of(log, "tool.succeeded")) for log in logs] == [CHILDREN] * PARENTS
