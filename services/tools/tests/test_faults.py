"""Faults around a call: an outage, a deleted session, one that cannot be read, a missed heartbeat."""

import asyncio

import pytest

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.port import Page
from fairlead_schema.record import Draft, UnknownEvent
from fairlead_tools import ledger
from services.tools.tests.conftest import (
    AT,
    Gate,
    World,
    ended,
    standing,
    tool,
    until,
)


async def test_a_held_request_is_kept_in_progress(world: World) -> None:
    """E-20: whoever lives and works is not overtaken."""
    gate = Gate()
    running = tool(execute=gate)
    world.registry.register(running)
    job = await world.call(running)
    execute = world.worker()
    beating = asyncio.create_task(execute.beat(0.001))

    async with standing(execute):
        await until(lambda: job.kept >= 2)
        gate.opened.set()
        await until(lambda: not world.jobs)
    await ended(beating)

    assert await world.settlements() == ["{'said': 'k'}"]


async def test_a_result_outlives_an_outage_of_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-18: it is written as soon as the servers are back, once."""
    monkeypatch.setattr(ledger, "RETRY_S", 0.001)
    running = tool()
    world.registry.register(running)
    await world.call(running)
    outages: list[str] = []

    async def away(drafts: tuple[Draft, ...]) -> None:
        kind = drafts[0].event.type
        outages.append(kind)
        if outages.count(kind) == 1:
            raise LogUnavailable("away")

    world.log.before = away

    assert await world.served() == ["{'said': 'k'}"]
    assert outages == ["tool.started"] * 2 + ["tool.succeeded"] * 2


async def test_a_session_erased_in_mid_call_is_let_go(world: World) -> None:
    """E-20: there is nothing to settle, and nothing hangs."""
    gate = Gate()
    running = tool(execute=gate)
    world.registry.register(running)
    await world.call(running)

    async with standing(world.worker()):
        await until(lambda: len(gate.runs) == 1)
        await world.log.erase(AT)
        gate.opened.set()
        await until(lambda: not world.jobs)

    assert await world.events() == []


async def test_a_session_that_cannot_be_read_is_buried(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-01: it stops with a visible reason and nothing else does."""
    await world.call("any")

    async def unreadable(*_args: object, **_kwargs: object) -> Page:
        raise UnknownEvent("from.the.future", 9)

    monkeypatch.setattr(world.log, "read", unreadable)
    async with standing(world.worker()):
        await until(lambda: not world.jobs)

    ((source, _subject, _body, reason),) = world.buried
    assert (source, "from.the.future" in reason) == ("tool", True)
