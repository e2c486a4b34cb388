"""Workers that die, pause or come back: `once` never runs again, and each call settles once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairlead_eventlog.process_life import PingResult
from fairlead_eventlog.streams import TOOL_DEADLINE_S
from fairlead_schema.events import ToolFailed, ToolStarted
from fairlead_schema.tools.content import ErrorInfo, Executor, RetryClass
from fairlead_session.calls.lifecycle import WORKERS_DIED
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_tools.calls.liveness import PeerLiveness
from fairlead_tools.calls.worker import ToolWorker
from services.tools.tests.conftest import (
    Gate,
    Harness,
    cancel_task,
    run_worker,
    tool,
    wait_until,
)

AGAIN: tuple[RetryClass, ...] = ("pure", "idempotent")
STARTED = ToolStarted(
    assistant_message_id="msg_a", call_id="call_1", worker="wkr_dead", generation=1
)


@asynccontextmanager
async def cut_off_worker(harness: Harness, name: str = "wkr_a") -> AsyncIterator[ToolWorker]:
    """A worker that is cut off: it takes nothing more, and its tools hang for ever."""
    worker = harness.worker(name)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        await cancel_task(task)
        harness.liveness.alive.discard(name)


@pytest.mark.parametrize("retry", [*AGAIN, "once"])
async def test_a_worker_that_dies_before_its_start_is_simply_replaced(
    harness: Harness, retry: RetryClass
) -> None:
    """E-20: nothing was started, so even `once` runs."""
    echo_tool = tool(retry=retry)
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)
    job.deliveries = 1

    assert await harness.serve_all("wkr_b") == ["{'said': 'k'}"]
    assert await harness.starts() == ["wkr_b"]


@pytest.mark.parametrize("retry", AGAIN)
async def test_what_may_run_again_runs_again_when_its_worker_died(
    harness: Harness, retry: RetryClass
) -> None:
    """E-20: the dead worker settles nothing if it comes back."""
    gate = Gate()
    echo_tool = tool(execute=gate, retry=retry)
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)

    async with cut_off_worker(harness):
        await wait_until(lambda: len(gate.runs) == 1)
        await harness.wait_for_starts(1)
    job.expire()
    async with run_worker(harness.worker("wkr_b")):
        await wait_until(lambda: len(gate.runs) == 2)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert [context.worker for context in gate.runs] == ["wkr_a", "wkr_b"]
    assert {context.key for context in gate.runs} == {"ses_1:msg_a:call_1"}
    assert await harness.starts() == ["wkr_a", "wkr_b"]
    assert await harness.settlements() == ["{'said': 'k'}"]


async def test_a_once_call_whose_worker_died_settles_as_interrupted(harness: Harness) -> None:
    """E-20: its outcome is unknown, it is never run again, and the session goes on."""
    gate = Gate()
    echo_tool = tool(execute=gate)
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)
    await harness.write(STARTED)

    assert await harness.serve_all("wkr_b") == [INTERRUPTED_TOOL]
    assert job.deliveries == 1
    assert gate.runs == []
    assert len(harness.wakes) == 1


async def test_a_once_call_is_left_to_a_worker_that_reconnects(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A7, E-20: after a restart of the NATS server a healthy worker misses a ping."""
    echo_tool = tool()
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)
    await harness.write(STARTED)
    ping = harness.liveness.ping

    async def ping_and_answer(instance: str, *, timeout_s: float) -> PingResult:
        life = await ping(instance, timeout_s=timeout_s)
        harness.liveness.alive.add("wkr_dead")
        return life

    monkeypatch.setattr(harness.liveness, "ping", ping_and_answer)

    async with run_worker(harness.worker("wkr_b")):
        await wait_until(lambda: job.deliveries >= 2)

    assert await harness.settlements() == []


async def test_a_call_is_settled_after_three_deaths_of_its_workers(harness: Harness) -> None:
    """B4, E-20: a pure call that ends every worker is not given to the next worker for ever."""
    gate = Gate()
    echo_tool = tool(execute=gate, retry="pure")
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)

    for deaths, name in enumerate(("wkr_a", "wkr_b", "wkr_c"), start=1):
        async with cut_off_worker(harness, name):
            await harness.wait_for_starts(deaths)
        job.expire()

    assert await harness.serve_all("wkr_d") == [WORKERS_DIED.message]
    assert await harness.starts() == ["wkr_a", "wkr_b", "wkr_c"]
    assert len(gate.runs) == 3
    assert len(harness.wakes) == 1


@pytest.mark.parametrize("retry", AGAIN)
async def test_workers_that_leave_in_good_order_are_no_deaths(
    harness: Harness, retry: RetryClass
) -> None:
    """B4, E-20: a rolling upgrade that moves a long call many times does not settle it."""
    gate = Gate()
    echo_tool = tool(execute=gate, retry=retry)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    for runs in range(1, 6):
        async with run_worker(harness.worker(f"wkr_{runs}")):
            await harness.wait_for_starts(runs)
        harness.liveness.alive.discard(f"wkr_{runs}")
    gate.opened.set()

    assert await harness.serve_all("wkr_last") == ["{'said': 'k'}"]
    assert len(await harness.starts()) == 6


@pytest.mark.parametrize("deliveries", [0, 1, 7])
async def test_a_silent_workers_call_is_left_until_its_own_deadline(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, deliveries: int
) -> None:
    """E-20: the worker may only be paused. The number of deliveries says nothing about the time."""
    now = 100.0
    monkeypatch.setattr("fairlead_tools.calls.liveness.monotonic", lambda: now)
    echo_tool = tool()
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)
    job.deliveries = deliveries
    await harness.write(STARTED)
    harness.liveness.alive.add("wkr_dead")
    harness.liveness.paused.add("wkr_dead")

    async with run_worker(harness.worker("wkr_b")):
        await wait_until(lambda: job.deliveries >= deliveries + 3)
        now += TOOL_DEADLINE_S - 0.1
        count = job.deliveries
        await wait_until(lambda: job.deliveries >= count + 3)
        assert await harness.settlements() == []
        now += 0.2
        await wait_until(lambda: not harness.jobs)

    assert await harness.settlements() == [INTERRUPTED_TOOL]


async def test_a_worker_that_answered_meanwhile_is_waited_for_anew(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-20: an answer starts the clock again, also when no request asks for the worker."""
    now = 100.0
    monkeypatch.setattr("fairlead_tools.calls.liveness.monotonic", lambda: now)
    harness.liveness.alive.add("wkr_dead")
    peers = PeerLiveness("wkr_b", harness.liveness, second_look_s=0.001, ping_every_s=0.001)

    for silent in (True, False, True):
        (harness.liveness.paused.add if silent else harness.liveness.paused.discard)("wkr_dead")
        if silent:
            assert not peers.is_overdue("wkr_dead")
        await asyncio.sleep(0.02)
        now += TOOL_DEADLINE_S - 1.0
    assert not peers.is_overdue("wkr_dead")
    now += 1.0
    assert peers.is_overdue("wkr_dead")
    harness.liveness.alive.discard("wkr_dead")
    assert await peers.ping("wkr_dead") == "gone"


async def test_a_live_workers_call_is_left_to_it(harness: Harness) -> None:
    """E-20: a second request for the call is put back until the call is settled."""
    echo_tool = tool()
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)
    await harness.write(STARTED)
    harness.liveness.alive.add("wkr_dead")

    async with run_worker(harness.worker("wkr_b")):
        await wait_until(lambda: job.deliveries >= 3)
        assert await harness.settlements() == []
        await harness.write(failed_event("by its worker"))
        await wait_until(lambda: not harness.jobs)

    assert await harness.settlements() == ["by its worker"]


async def test_a_worker_that_died_between_settlement_and_wake_is_made_good(
    harness: Harness,
) -> None:
    """E-03: the repeated delivery finds the call settled, and wakes the session."""
    echo_tool = tool()
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)
    await harness.write(STARTED, failed_event("settled"))
    job.deliveries = 1

    assert await harness.serve_all("wkr_b") == ["settled"]
    assert len(harness.wakes) == 1


async def test_a_paused_worker_that_was_overtaken_stops_and_settles_nothing(
    harness: Harness,
) -> None:
    """E-20: the start by another worker cancels the tool; that worker acknowledges the request."""
    gate = Gate()
    echo_tool = tool(execute=gate, retry="pure")
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 1)
        harness.liveness.alive.add("wkr_b")
        await harness.write(STARTED.model_copy(update={"worker": "wkr_b"}))
        await wait_until(lambda: gate.cancelled == 1)
        await asyncio.sleep(0.01)

    assert await harness.settlements() == []
    assert (harness.jobs, harness.wakes) == ([job], [])


async def test_a_settlement_by_somebody_else_ends_the_run(harness: Harness) -> None:
    """E-16: a runner settled the call after an interrupt, so nothing is left to settle."""
    gate = Gate()
    echo_tool = tool(execute=gate)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 1)
        await harness.write(failed_event(INTERRUPTED_TOOL))
        await wait_until(lambda: not harness.jobs)

    assert gate.cancelled == 1
    assert await harness.settlements() == [INTERRUPTED_TOOL]


async def test_one_worker_runs_a_redelivered_call_once(harness: Harness) -> None:
    """E-20: a second request for the running call starts nothing either."""
    gate = Gate()
    echo_tool = tool(execute=gate, retry="pure")
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 1)
        job.expire()
        await wait_until(lambda: job.deliveries == 2)
        second = await harness.put()
        await wait_until(lambda: second.deliveries == 1)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert len(gate.runs) == 1
    assert await harness.settlements() == ["{'said': 'k'}"]


def failed_event(message: str) -> ToolFailed:
    return ToolFailed(
        assistant_message_id="msg_a",
        call_id="call_1",
        error=ErrorInfo(message=message),
        provider=Executor(),
    )
