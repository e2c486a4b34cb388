"""A restart of the NATS server under healthy processes: nobody takes anybody for dead."""

import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from fairlead_testing.session_driver import (
    count_runs,
    events_of,
    probe_prompt,
    probe_stack,
    say,
    wait_for_probe,
    wait_until_settled,
)
from fairlead_testing.stack import Stack, event_types

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """Two runners and two tool workers."""
    async with probe_stack() as running:
        yield running


async def test_a_turn_and_a_call_survive_a_restart_of_the_server(up: Stack) -> None:
    """A7: the runner is not fenced in mid-turn, and the running `once` call is not given up."""
    talking, calling = await up.session(), await up.session()
    await say(up, talking, "[[sim: chunks=60 delay_ms=150]] take your time")
    await say(up, calling, probe_prompt("restart", 9000))
    await up.until(talking, "text.started")
    await wait_for_probe(up, "restart", "begun")

    await up.restart("nats", 0, signal.SIGKILL)
    log, calls = await wait_until_settled(up, talking), await wait_until_settled(up, calling)

    assert event_types(log).count("execution.claimed") == 1
    assert not {"execution.recovered", "step.failed"} & set(event_types(log))
    assert not events_of(calls, "tool.failed")
    assert len(events_of(calls, "tool.succeeded")) == 1
    assert count_runs(up, "restart") == 1
