"""Interrupts and shutdowns: the tool is cancelled, and its call is settled or handed over."""

import asyncio

import pytest

from fairlead_schema.events import (
    ExecutionReleased,
    InterruptRequested,
    PromptAdmitted,
    SessionPurged,
    ToolFailed,
    ToolSucceeded,
)
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft
from fairlead_schema.tools.content import ErrorInfo, Executor, RetryClass
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_tools.calls.timings import CallTimings
from fairlead_tools.registry.tool import CallContext
from services.tools.tests.conftest import (
    EchoInput,
    EchoOutput,
    Gate,
    Harness,
    cancel_task,
    run_worker,
    tool,
    wait_until,
)


@pytest.mark.parametrize("retry", ["pure", "idempotent", "once"])
async def test_an_interrupt_cancels_the_tool_and_the_settlement_says_so(
    harness: Harness, retry: RetryClass
) -> None:
    """E-16: every running call of the session, once each."""
    gate = Gate()
    echo_tool = tool(execute=gate, retry=retry)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool, id_="call_1")
    await harness.call(echo_tool, id_="call_2")

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 2)
        await harness.wait_for_starts(2)
        await harness.write(InterruptRequested())
        await wait_until(lambda: not harness.jobs)

    assert gate.cancelled == 2
    assert await harness.settlements() == [INTERRUPTED_TOOL] * 2
    assert len(harness.wakes) == 1


async def test_a_call_of_a_purged_session_is_cancelled(harness: Harness) -> None:
    """E-16, H-29: the session is gone, so there is nothing to settle."""
    gate = Gate()
    echo_tool = tool(execute=gate)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 1)
        await harness.write(SessionPurged())
        await wait_until(lambda: not harness.jobs)

    assert gate.cancelled == 1
    assert await harness.settlements() == []


async def test_a_call_of_an_interrupted_session_does_not_start(harness: Harness) -> None:
    """E-16: the request is dropped, and the next owner of the session settles the call."""
    echo_tool = tool()
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    await harness.write(InterruptRequested())

    assert await harness.serve_all() == []
    assert await harness.starts() == []


async def test_an_interrupt_is_honoured_although_its_own_wake_was_lost(harness: Harness) -> None:
    """C-12: the session has no owner, so the request of the call has to wake it."""
    echo_tool = tool()
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    await harness.write(ExecutionReleased(generation=1, reason="parked"), InterruptRequested())

    await harness.serve_all()

    assert len(harness.wakes) == 1


async def test_what_the_interrupt_settled_already_wakes_nobody(harness: Harness) -> None:
    """C-12, C-16: a wake after the interrupt would start the pending input."""
    gate = Gate()
    echo_tool = tool(execute=gate)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    pending = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="later"), delivery="queue")
    failure = ToolFailed(
        assistant_message_id="msg_a",
        call_id="call_1",
        error=ErrorInfo(message=INTERRUPTED_TOOL),
        provider=Executor(),
    )
    release = ExecutionReleased(generation=1, reason="interrupted")

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 1)
        await harness.write(pending, InterruptRequested(), failure, release)
        await wait_until(lambda: not harness.jobs)

    assert gate.cancelled == 1
    assert harness.wakes == []


async def test_an_interrupt_after_the_tool_returned_does_not_lose_its_result(
    harness: Harness,
) -> None:
    """E-18: nothing stops the worker between the end of the tool and the settlement."""
    echo_tool = tool()
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async def interrupt(drafts: tuple[Draft, ...]) -> None:
        if isinstance(drafts[0].event, ToolSucceeded):
            harness.log.before = None
            await harness.write(InterruptRequested())

    harness.log.before = interrupt

    assert await harness.serve_all() == ["{'said': 'k'}"]


async def test_a_tool_that_ignores_its_cancellation_is_abandoned(harness: Harness) -> None:
    """E-16: its call is settled all the same."""
    harness.timings = CallTimings(cancel_s=0.01)
    gate, stubborn = asyncio.Event(), asyncio.Event()

    async def run(_request: EchoInput, _context: CallContext) -> EchoOutput:
        stubborn.set()
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        raise RuntimeError("much later")

    echo_tool = tool(execute=run)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await wait_until(stubborn.is_set)
        await harness.write(InterruptRequested())
        await wait_until(lambda: not harness.jobs)
    gate.set()
    await asyncio.sleep(0)

    assert await harness.settlements() == [INTERRUPTED_TOOL]


async def test_a_leaving_worker_finishes_what_fits_its_grace(harness: Harness) -> None:
    """E-18: the worker takes no new request meanwhile."""
    harness.settings = ToolsConfig(grace_s=5)
    gate = Gate()
    echo_tool = tool(execute=gate)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    worker = harness.worker()
    task = asyncio.create_task(worker.run())
    await wait_until(lambda: len(gate.runs) == 1)

    await cancel_task(task)
    shutdown = asyncio.create_task(worker.shutdown())
    later = await harness.call(echo_tool, id_="call_2")
    gate.opened.set()
    await shutdown

    assert await harness.settlements() == ["{'said': 'k'}"]
    assert harness.jobs == [later]


@pytest.mark.parametrize("retry", ["pure", "idempotent"])
async def test_what_does_not_fit_the_grace_is_put_back(harness: Harness, retry: RetryClass) -> None:
    """E-20: another worker runs it as soon as this one is gone."""
    gate = Gate()
    echo_tool = tool(execute=gate, retry=retry)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 1)
    assert (gate.cancelled, await harness.settlements(), len(harness.jobs)) == (1, [], 1)

    harness.liveness.alive.discard("wkr_a")
    gate.opened.set()

    assert await harness.serve_all("wkr_b") == ["{'said': 'k'}"]
    assert await harness.starts() == ["wkr_a", "wkr_b"]


async def test_a_once_call_that_does_not_fit_the_grace_settles_as_interrupted(
    harness: Harness,
) -> None:
    """E-20: nobody can know what it did, so it never runs again."""
    gate = Gate()
    echo_tool = tool(execute=gate)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 1)

    assert await harness.settlements() == [INTERRUPTED_TOOL]
    assert (harness.jobs, len(harness.wakes)) == ([], 1)
