"""Interrupts and departures: the tool is cancelled, its call settled or handed over, never lost."""

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
from fairlead_tools.calls import execution
from fairlead_tools.registry.tool import CallContext
from services.tools.tests.conftest import Asked, Gate, Told, World, ended, standing, tool, until


@pytest.mark.parametrize("retry", ["pure", "idempotent", "once"])
async def test_an_interrupt_cancels_the_tool_and_the_settlement_says_so(
    world: World, retry: RetryClass
) -> None:
    """E-16: every running call of the session, once each."""
    gate = Gate()
    running = tool(execute=gate, retry=retry)
    world.registry.register(running)
    await world.call(running, id_="call_1")
    await world.call(running, id_="call_2")

    async with standing(world.worker()):
        await until(lambda: len(gate.runs) == 2)
        await world.started(2)
        await world.write(InterruptRequested())
        await until(lambda: not world.jobs)

    assert gate.cancelled == 2
    assert await world.settlements() == [INTERRUPTED_TOOL] * 2
    assert len(world.wakes) == 1


async def test_a_call_of_a_purged_session_is_cancelled(world: World) -> None:
    """E-16, H-29: nobody will ever read what it does; there is nothing to settle."""
    gate = Gate()
    running = tool(execute=gate)
    world.registry.register(running)
    await world.call(running)

    async with standing(world.worker()):
        await until(lambda: len(gate.runs) == 1)
        await world.write(SessionPurged())
        await until(lambda: not world.jobs)

    assert gate.cancelled == 1
    assert await world.settlements() == []


async def test_a_call_of_an_interrupted_session_does_not_start(world: World) -> None:
    """E-16: its request is dropped; whoever drains the session settles the call."""
    running = tool()
    world.registry.register(running)
    await world.call(running)
    await world.write(InterruptRequested())

    assert await world.served() == []
    assert await world.starts() == []


async def test_an_interrupt_is_honoured_although_its_own_wake_was_lost(world: World) -> None:
    """C-12: nobody owns the session, and the request of its call is the last thing on its way."""
    running = tool()
    world.registry.register(running)
    await world.call(running)
    await world.write(ExecutionReleased(generation=1, reason="parked"), InterruptRequested())

    await world.served()

    assert len(world.wakes) == 1


async def test_what_the_interrupt_settled_already_wakes_nobody(world: World) -> None:
    """C-12, C-16: a wake after the interrupt would start what was left pending."""
    gate = Gate()
    running = tool(execute=gate)
    world.registry.register(running)
    await world.call(running)
    pending = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="later"), delivery="queue")
    failed = ToolFailed(
        assistant_message_id="msg_a",
        call_id="call_1",
        error=ErrorInfo(message=INTERRUPTED_TOOL),
        provider=Executor(),
    )
    rested = ExecutionReleased(generation=1, reason="interrupted")

    async with standing(world.worker()):
        await until(lambda: len(gate.runs) == 1)
        await world.write(pending, InterruptRequested(), failed, rested)
        await until(lambda: not world.jobs)

    assert gate.cancelled == 1
    assert world.wakes == []


async def test_an_interrupt_after_the_tool_returned_does_not_lose_its_result(world: World) -> None:
    """E-18: checking and settling are one region that nothing cuts."""
    running = tool()
    world.registry.register(running)
    await world.call(running)

    async def interrupt(drafts: tuple[Draft, ...]) -> None:
        if isinstance(drafts[0].event, ToolSucceeded):
            world.log.before = None
            await world.write(InterruptRequested())

    world.log.before = interrupt

    assert await world.served() == ["{'said': 'k'}"]


async def test_a_tool_that_ignores_its_cancellation_is_abandoned(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-16: its call is settled all the same."""
    monkeypatch.setattr(execution, "CANCEL_S", 0.01)
    gate, stubborn = asyncio.Event(), asyncio.Event()

    async def run(_asked: Asked, _context: CallContext) -> Told:
        stubborn.set()
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        raise RuntimeError("much later")

    running = tool(execute=run)
    world.registry.register(running)
    await world.call(running)

    async with standing(world.worker()):
        await until(stubborn.is_set)
        await world.write(InterruptRequested())
        await until(lambda: not world.jobs)
    gate.set()
    await asyncio.sleep(0)

    assert await world.settlements() == [INTERRUPTED_TOOL]


async def test_a_leaving_worker_finishes_what_fits_its_grace(world: World) -> None:
    """E-18: and takes nothing new."""
    world.settings = ToolsConfig(grace_s=5)
    gate = Gate()
    running = tool(execute=gate)
    world.registry.register(running)
    await world.call(running)
    execute = world.worker()
    task = asyncio.create_task(execute.stand())
    await until(lambda: len(gate.runs) == 1)

    await ended(task)
    leaving = asyncio.create_task(execute.leave())
    later = await world.call(running, id_="call_2")
    gate.opened.set()
    await leaving

    assert await world.settlements() == ["{'said': 'k'}"]
    assert world.jobs == [later]


@pytest.mark.parametrize("retry", ["pure", "idempotent"])
async def test_what_does_not_fit_the_grace_is_put_back(world: World, retry: RetryClass) -> None:
    """E-20: another worker runs it as soon as this one is gone."""
    gate = Gate()
    running = tool(execute=gate, retry=retry)
    world.registry.register(running)
    await world.call(running)

    async with standing(world.worker()):
        await until(lambda: len(gate.runs) == 1)
    assert (gate.cancelled, await world.settlements(), len(world.jobs)) == (1, [], 1)

    world.liveness.alive.discard("wkr_a")
    gate.opened.set()

    assert await world.served("wkr_b") == ["{'said': 'k'}"]
    assert await world.starts() == ["wkr_a", "wkr_b"]


async def test_a_once_call_that_does_not_fit_the_grace_settles_as_interrupted(
    world: World,
) -> None:
    """E-20: nobody can know what it did, so it never runs again."""
    gate = Gate()
    running = tool(execute=gate)
    world.registry.register(running)
    await world.call(running)

    async with standing(world.worker()):
        await until(lambda: len(gate.runs) == 1)

    assert await world.settlements() == [INTERRUPTED_TOOL]
    assert (world.jobs, len(world.wakes)) == ([], 1)
