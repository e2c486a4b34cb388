"""Moves of a drain: interrupts, retries, timers, defects."""

import asyncio
from itertools import cycle

import pytest
from starlette.responses import Response
from typing_extensions import override

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.memory.timers import MemoryTimers
from fairlead_eventlog.ports import CommitPage, Head
from fairlead_eventlog.process_life import Nudge
from fairlead_runner.drain.drain import Drain
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema import subjects
from fairlead_schema.events import (
    InterruptRequested,
)
from fairlead_schema.subjects import Address
from services.runner.tests.conftest import (
    AT,
    World,
    admitted,
    error_reply,
    run_consumer,
    text_reply,
    wait_until,
)


async def test_a_nudge_makes_a_streaming_turn_see_its_interrupt(world: World) -> None:
    """C-12: a nudge makes a long turn look at the log and stop."""
    hanging = asyncio.Event()

    async def hangs() -> Response:
        await hanging.wait()
        return text_reply("too late")

    world.provider.replies.append(hangs)
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context())

    async with run_consumer(consumer):
        await wait_until(lambda: len(world.provider.requests) == 1)
        await world.write(InterruptRequested())
        consumer.nudge(Nudge(AT))
        await wait_until(lambda: not world.wakes)
        hanging.set()

    assert (await world.session()).execution.rested == "interrupted"
    assert "step.started" not in await world.types()


async def test_a_busy_provider_is_asked_again_and_each_retry_is_told(world: World) -> None:
    """Q-13, D-43, D-44, P-04."""
    world.config["runner"] = {"retry_base_s": 0.001}
    world.provider.replies.extend(
        [error_reply(429, "busy"), error_reply(503, "busy"), text_reply("hello")]
    )
    await world.write(admitted("msg_1"))

    await world.drain()

    types = await world.types()
    assert types.count("retried") == 2
    assert types.count("attempt.dispatched") == 3
    assert types.count("prompt.promoted") == 1
    assert types.count("step.started") == 1


async def test_a_provider_that_stays_busy_fails_the_step_in_the_end(world: World) -> None:
    world.config["runner"] = {"retry_base_s": 0.001, "retry_attempts_max": 2}
    world.provider.replies.extend([error_reply(429, "busy")] * 2)
    await world.write(admitted("msg_1"))

    await world.drain()

    types = await world.types()
    assert (types.count("retried"), types.count("step.failed")) == (1, 1)
    assert (await world.session()).execution.rested == "failed"


async def test_a_long_back_off_sets_a_timer_and_an_early_wake_does_nothing(world: World) -> None:
    world.config["runner"] = {"park_after_s": 0, "retry_base_s": 60}
    world.provider.replies.extend([error_reply(429, "busy"), text_reply("hello")])
    await world.write(admitted("msg_1"))

    await world.drain()
    parked = await world.types()
    await world.drain()

    assert (await world.session()).execution.rested == "retry-later"
    assert await world.types() == parked
    timers = world.eventlog.timers
    assert isinstance(timers, MemoryTimers)
    assert timers.times[AT] == (await world.session()).execution.wake_at


async def test_a_due_timer_wakes_its_session(world: World) -> None:
    timers = world.eventlog.timers
    assert isinstance(timers, MemoryTimers)
    await timers.wake_at(AT, 1)
    consumer = WakeConsumer(world.context())
    firing = asyncio.create_task(consumer.fire_timers())
    timers.fire(AT)

    await wait_until(lambda: bool(world.wakes))

    firing.cancel()
    assert [job.subject for job in world.wakes] == [subjects.wake(AT)]


class FailingLog(MemoryLog):
    """A log whose reads fail because of a defect."""

    @override
    async def read(
        self, at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        raise ZeroDivisionError("our fault")


async def test_a_defect_puts_the_session_aside_after_a_few_tries(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(world.log), "read", FailingLog.read)
    await world.wake()

    await world.redeliver_until_gone()

    dead = world.eventlog.dead_letters
    assert isinstance(dead, MemoryDeadLetters)
    assert "our fault" in dead.letters[0][3]


async def test_defects_with_good_turns_in_between_do_not_add_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session stops after defects in a row. A turn that went well ends the row."""
    monkeypatch.setattr("fairlead_runner.wake_handler.DEFECTS_MAX", 2)
    fails, run = cycle([True, False]), Drain.run

    async def run_every_second_time(drain: Drain) -> bool:
        if next(fails):
            raise ZeroDivisionError("our fault")
        return await run(drain)

    monkeypatch.setattr(Drain, "run", run_every_second_time)
    async with run_consumer(WakeConsumer(world.context())):
        for number in range(3):
            await world.write(admitted(f"msg_{number}"))
            await world.wake()
            while world.wakes:
                await asyncio.sleep(0.01)
                for wake in world.wakes:
                    wake.expire()

    dead = world.eventlog.dead_letters
    assert isinstance(dead, MemoryDeadLetters)
    assert dead.letters == []
    assert len(world.provider.requests) == 3


async def test_a_timer_that_cannot_wake_its_session_does_not_stop_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A4: the failure of one session is its own, and its timer comes again."""
    timers, wakes = world.eventlog.timers, world.eventlog.wakes
    assert isinstance(timers, MemoryTimers)
    stuck, wake = Address("full", AT.session_id), wakes.wake

    async def refuse_one(at: Address, *, position: int | None = None) -> bool:
        if at == stuck:
            raise LogUnavailable("no room")
        return await wake(at, position=position)

    monkeypatch.setattr(wakes, "wake", refuse_one)
    firing = asyncio.create_task(WakeConsumer(world.context()).fire_timers())
    for at in (stuck, AT):
        await timers.wake_at(at, 1)
        timers.fire(at)

    await wait_until(lambda: bool(world.wakes))

    firing.cancel()
    assert [job.subject for job in world.wakes] == [subjects.wake(AT)]
