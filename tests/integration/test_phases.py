"""A tool worker killed in each phase of a call: what has an effect never has it twice.

The server is stopped in mid-call, so that the worker stands still exactly where it would write next;
then the worker is killed, and the server goes on.
"""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address, tool
from fairlead_schema.tools.request import ToolRequest
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_testing.session_driver import (
    count_runs,
    events_of,
    probe_lines,
    probe_prompt,
    probe_stack,
    say,
    wait_for_probe,
    wait_until_settled,
)
from fairlead_testing.stack import TIMEOUT_S, Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

WORKERS = 2
# Longer than a worker is asked whether it lives, and far from its request's deadline.
PAUSE_S = 5.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """Two runners, two tool workers, and probes that count their runs."""
    async with probe_stack() as running:
        yield running


@contextmanager
def nobody_writes(up: Stack) -> Iterator[None]:
    """The server holds still: what was sent to it is not stored before it goes on."""
    up.up.kill("nats", 0, signal.SIGSTOP)
    try:
        yield
    finally:
        up.up.kill("nats", 0, signal.SIGCONT)


def kill_workers(up: Stack) -> None:
    for index in range(WORKERS):
        up.up.kill("tools", index, signal.SIGKILL)


async def deliveries(link: NatsLink) -> int:
    """How often the server has handed out a tool request, repeated ones included."""
    consumers = (await link.api("CONSUMER.LIST.TOOLS"))["consumers"]
    return sum(consumer["delivered"]["consumer_seq"] for consumer in consumers)


async def lose_settlement(up: Stack, key: str, tool: str) -> str:
    """A call whose tool has returned, and whose worker died before it could say so.

    Somebody else wrote meanwhile, so the worker must read before its settlement can count.
    """
    session = await up.session()
    await say(up, session, probe_prompt(key, 1_000, tool=tool))
    await wait_for_probe(up, key, "begun")
    await up.until(session, "tool.started")
    await say(up, session, "meanwhile")
    with nobody_writes(up):
        await wait_for_probe(up, key, "ended")
        kill_workers(up)
    return session


async def test_killed_after_its_run_a_call_that_may_run_once_does(up: Stack) -> None:
    """E-20: its effect is in the world and its result is lost: it is settled, and not run again."""
    session = await lose_settlement(up, "after-once", "probe_once")

    log = await wait_until_settled(up, session)

    (failed,) = events_of(log, "tool.failed")
    assert failed.error.message == INTERRUPTED_TOOL
    assert count_runs(up, "after-once") == 1


@pytest.mark.slow
async def test_killed_after_its_run_a_pure_call_runs_again(up: Stack) -> None:
    """E-20: nothing was lost but time."""
    session = await lose_settlement(up, "after-pure", "probe_pure")

    log = await wait_until_settled(up, session)

    (succeeded,) = events_of(log, "tool.succeeded")
    assert succeeded.structured == {"key": "after-pure", "runs": 2}
    assert not events_of(log, "tool.failed")


@pytest.mark.parametrize("tool", ["probe_once", pytest.param("probe_pure", marks=pytest.mark.slow)])
async def test_a_settlement_that_left_its_killed_worker_counts(up: Stack, tool: str) -> None:
    """E-20: the result is on its way when its worker dies: it lands, and nothing runs again."""
    key = f"left-{tool}"
    session = await up.session()
    await say(up, session, probe_prompt(key, 1_000, tool=tool))
    await up.until(session, "tool.started")
    with nobody_writes(up):
        await wait_for_probe(up, key, "ended")
        # The server is stopped, so nothing shows that the worker has sent its commit. A busy
        # machine needs more than half a second for it.
        await asyncio.sleep(2.0)
        kill_workers(up)

    log = await wait_until_settled(up, session)

    assert len(events_of(log, "tool.succeeded")) == 1
    assert not events_of(log, "tool.failed")
    assert count_runs(up, key) == 1


@pytest.mark.parametrize(
    ("tool", "times"), [("probe_once", 1), pytest.param("probe_pure", 2, marks=pytest.mark.slow)]
)
async def test_a_request_lost_with_a_server_after_its_worker_died_is_made_good(
    up: Stack, tool: str, times: int
) -> None:
    """E-20: the call was begun, nobody works on it, and nothing in a queue tells of it."""
    key = f"forsaken-{tool}"
    session = await up.session()
    await say(up, session, probe_prompt(key, 2_000, tool=tool))
    await up.until(session, "tool.started")
    await wait_for_probe(up, key, "begun")
    kill_workers(up)
    async with open_link(up.up.operator, name="test") as link:
        await link.api("STREAM.PURGE.TOOLS")

    log = await wait_until_settled(up, session)

    settlements = [*events_of(log, "tool.succeeded"), *events_of(log, "tool.failed")]
    assert len(settlements) == 1
    assert count_runs(up, key) == times


async def test_killed_before_its_start_a_call_runs_once(up: Stack) -> None:
    """E-01, E-20: the request was taken and no start is in the log: it is simply taken again."""
    session = await up.session()
    arguments = json.dumps({"key": "before"})
    await say(
        up,
        session,
        f"[[sim: first_byte_ms=1500 tool=probe_once args='{arguments}' ; answer=done]] go",
    )
    await up.until(session, "attempt.dispatched")
    for index in range(WORKERS):
        up.up.kill("tools", index, signal.SIGSTOP)
    await up.until(session, "tool.called")
    kill_workers(up)

    log = await wait_until_settled(up, session)

    assert len(events_of(log, "tool.started")) == len(events_of(log, "tool.succeeded")) == 1
    assert count_runs(up, "before") == 1


@pytest.mark.slow
async def test_killed_while_its_output_is_kept_a_call_is_settled_without_it(
    up: Stack, tmp_path: Path
) -> None:
    """E-18, J-34: the whole text was on its way to the store, and no settlement names it."""
    mark = tmp_path / "mark"
    command = "seq 1 400000; sleep 1; echo done > mark"
    arguments = json.dumps({"command": command})
    session = await up.session(location={"directory": str(tmp_path)})
    await say(up, session, f"[[sim: tool=bash args='{arguments}' ; answer=done]] go")
    await up.until(session, "tool.started")
    await asyncio.sleep(0.3)
    with nobody_writes(up):
        async with asyncio.timeout(TIMEOUT_S):
            while not mark.exists():
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)
        kill_workers(up)

    log = await wait_until_settled(up, session)

    (failed,) = events_of(log, "tool.failed")
    assert failed.error.message == INTERRUPTED_TOOL
    assert not events_of(log, "tool.succeeded")


async def test_paused_for_a_while_a_worker_keeps_its_call(up: Stack) -> None:
    """E-20: a second request was put back while it lived; its own deadline is what counts."""
    session = await up.session()
    await say(up, session, probe_prompt("paused", 3_000))
    await wait_for_probe(up, "paused", "begun")
    log = await up.until(session, "tool.started")
    again = ToolRequest(
        session_id=session,
        assistant_message_id=events_of(log, "tool.started")[0].assistant_message_id,
        call_id=events_of(log, "tool.started")[0].call_id,
    )
    body = again.model_dump_json(by_alias=True).encode()
    async with open_link(up.up.operator, name="test") as link:
        before = await deliveries(link)
        for _ in range(3):
            await up.eventlog.work.put(tool(Address(DEFAULT_TENANT, session), "default"), body)
        async with asyncio.timeout(TIMEOUT_S):
            while await deliveries(link) < before + 3:
                await asyncio.sleep(0.02)
    # A worker that took a request finds the call's worker alive, and puts the request back.
    await asyncio.sleep(0.2)
    pid = next(int(line[3]) for line in probe_lines(up) if line[1] == "paused")
    os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(PAUSE_S)
    os.kill(pid, signal.SIGCONT)

    log = await wait_until_settled(up, session)

    assert not events_of(log, "tool.failed")
    assert len(events_of(log, "tool.started")) == len(events_of(log, "tool.succeeded")) == 1
    assert count_runs(up, "paused") == 1
