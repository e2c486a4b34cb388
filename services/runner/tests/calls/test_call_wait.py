"""How long a runner waits for calls: for workers a short while, for all others not at all."""

import asyncio
from typing import Any

import pytest

from fairlead_eventlog.process_life import Nudge, PingResult
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.events import (
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
    ToolDeferred,
    ToolStarted,
)
from services.runner.tests.conftest import (
    AT,
    WAIT_S,
    World,
    admitted,
    run_consumer,
    text_reply,
    wait_until,
)
from services.runner.tests.tool_calls import call_reply, tool_succeeded, wait_for_event

# A runner that waited so long would exceed the time limit of every test.
LONG_S = 60.0


@pytest.fixture(autouse=True)
def _patient(world: World) -> None:
    """Runners wait long for workers, and look long at a worker before it counts as gone."""
    world.config["runner"] = {"tools_wait_s": LONG_S}
    world.shorten(worker_second_look_s=LONG_S)


async def leave_call(world: World, *, owned: bool) -> None:
    """A session, parked or owned by a dead runner, whose call was started by a worker that is gone."""
    world.config["runner"] = {"tools_wait_s": 0.01}
    world.provider.replies.append(call_reply("c1"))
    await world.write(admitted("msg_1"))
    await world.drain()
    called: Any = await wait_for_event(world, "tool.called")
    ids = {"assistant_message_id": called.assistant_message_id, "call_id": "c1"}
    await world.write(ToolStarted(**ids, worker="wkr_gone", generation=1))
    if owned:
        await world.write(ExecutionClaimed(generation=2, runner="run_dead"))
    world.config["runner"] = {"tools_wait_s": LONG_S}


@pytest.fixture
def pings(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who was pinged."""
    liveness, pinged = world.eventlog.liveness, list[str]()
    ping = liveness.ping

    async def note(instance: str, *, timeout_s: float) -> PingResult:
        pinged.append(instance)
        return await ping(instance, timeout_s=timeout_s)

    monkeypatch.setattr(liveness, "ping", note)
    return pinged


async def test_a_session_that_waits_for_children_parks_at_once(world: World) -> None:
    """D1: its place is free while the children work, and their answers wake it."""
    world.provider.replies.extend([call_reply("c1", "c2", tool="task"), text_reply("thanks")])
    await world.write(admitted("msg_1"))

    await world.drain()

    session = await world.session()
    assert (session.execution.rested, len(session.calls)) == ("parked", 2)
    called = await wait_for_event(world, "tool.called")
    await world.write(tool_succeeded(called, "c1"), tool_succeeded(called, "c2"))
    await world.drain("run_b")
    assert (await world.session()).execution.rested == "idle"


async def test_a_session_waits_for_a_worker_and_then_parks_for_a_child(world: World) -> None:
    """D1: a short call stays fast, and no place is held for what remains."""
    replies = [call_reply("c1"), call_reply("c1", tool="task"), text_reply("thanks")]
    world.provider.replies.extend(replies)
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context())

    async with run_consumer(consumer):
        called = await wait_for_event(world, "tool.called")
        assert (await world.session()).execution.owner is not None
        await world.write(tool_succeeded(called))
        consumer.nudge(Nudge(AT))
        await wait_until(lambda: not world.wakes)

    (released,) = [e for e in await world.events() if isinstance(e, ExecutionReleased)]
    assert (released.reason, len(world.provider.requests)) == ("parked", 2)


async def test_a_session_whose_call_is_deferred_parks_at_once(world: World) -> None:
    """D1: another service settles the call, perhaps in days."""
    world.provider.replies.append(call_reply("c1"))
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        called: Any = await wait_for_event(world, "tool.called")
        ids = {"assistant_message_id": called.assistant_message_id, "call_id": "c1"}
        await world.write(
            ToolStarted(**ids, worker="wkr_1", generation=1), ToolDeferred(**ids, until=2**50)
        )
        await wait_until(lambda: not world.wakes)

    assert (await world.session()).execution.rested == "parked"


async def test_a_runner_without_a_free_place_waits_shortly_for_a_worker(world: World) -> None:
    """D1: a long call gives its place to another session; a runner with free places waits on."""
    world.shorten(crowded_wait_s=0.01)
    world.config["runner"] |= {"sessions_max": 2}
    world.provider.replies.append(call_reply("c1"))
    await world.write(admitted("msg_1"))
    await world.wake()
    context = world.context()

    async with run_consumer(WakeConsumer(context)):
        await wait_for_event(world, "attempt.finished")
        await asyncio.sleep(0.2)
        assert (await world.session()).execution.owner is not None
        other = context.places.occupy()
        await wait_until(lambda: not world.wakes)
        other.release()

    assert (await world.session()).execution.rested == "parked"


@pytest.mark.parametrize("owned", [False, True])
async def test_an_interrupt_does_not_wait_for_the_second_look_at_a_worker(
    world: World,
    pings: list[str],
    owned: bool,  # noqa: FBT001
) -> None:
    """A7, C-09: the worker of the call may be gone, and that takes a while to confirm."""
    await leave_call(world, owned=owned)
    await world.wake()

    async with run_consumer(WakeConsumer(world.context("run_b"))):
        await wait_until(lambda: "wkr_gone" in pings)
        await world.write(InterruptRequested())
        await wait_until(lambda: not world.wakes)

    assert (await world.session()).execution.rested == "interrupted"


@pytest.mark.parametrize("owned", [False, True])
async def test_a_departure_does_not_wait_for_the_second_look_at_a_worker(
    world: World,
    pings: list[str],
    owned: bool,  # noqa: FBT001
) -> None:
    """A7: the session and its wake are left to the next runner."""
    await leave_call(world, owned=owned)
    await world.wake()
    consumer = WakeConsumer(world.context("run_b"))

    async with run_consumer(consumer):
        await wait_until(lambda: "wkr_gone" in pings)
        async with asyncio.timeout(WAIT_S):
            await consumer.shutdown()

    assert (await world.session()).execution.owner is None
    assert len(world.wakes) == 1


async def test_a_departure_does_not_wait_for_the_second_look_at_an_owner(
    world: World, pings: list[str]
) -> None:
    """A7: a runner that leaves takes nothing over, and the wake goes back."""
    world.shorten(owner_second_look_s=LONG_S)
    await world.write(admitted("msg_1"), ExecutionClaimed(generation=1, runner="run_dead"))
    before = await world.types()
    await world.wake()
    consumer = WakeConsumer(world.context("run_b"))

    async with run_consumer(consumer):
        await wait_until(lambda: "run_dead" in pings)
        async with asyncio.timeout(WAIT_S):
            await consumer.shutdown()

    assert await world.types() == before
    assert len(world.wakes) == 1
