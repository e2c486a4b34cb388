"""A tenant's budget: the projector is asked for the usage before each provider call."""

import json

import pytest

from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_eventlog.memory.timers import MemoryTimers
from fairlead_schema import subjects
from services.runner.tests.conftest import AT, World, admitted


def set_usage(world: World, tokens: int | None) -> None:
    """Let the projector answer with this usage from now on; None: it does not answer."""
    assert isinstance(world.eventlog.requests, MemoryRequests)
    body = json.dumps({"data": {"cost": 0.0, "tokens": tokens}}).encode()

    async def answer(_body: bytes) -> bytes:
        return body

    world.eventlog.requests.answerers.pop(subjects.tenant_usage("default"), None)
    if tokens is not None:
        world.eventlog.requests.answerers[subjects.tenant_usage("default")] = answer


@pytest.fixture(autouse=True)
def _limited(world: World) -> None:
    world.shorten(usage_fresh_s=0.0)
    world.config["tenant"] = {"default": {"tokens": 10}}
    world.config["runner"] = {"observe_timeout_s": 0.05}


async def test_while_nobody_can_say_what_was_used_the_session_waits_on_a_timer(
    world: World,
) -> None:
    set_usage(world, None)
    await world.write(admitted("msg_1"))

    await world.drain()
    resting, before = await world.session(), await world.types()
    await world.drain()

    assert (resting.execution.rested, len(resting.inbox.pending)) == ("budget-unknown", 1)
    assert world.provider.requests == []
    assert await world.types() == before, "looking again writes nothing"
    assert isinstance(world.eventlog.timers, MemoryTimers)
    assert AT in world.eventlog.timers.times

    set_usage(world, 5)
    await world.drain()
    assert (await world.session()).execution.rested == "idle"


async def test_the_last_known_sum_stands_for_a_while_and_no_longer(world: World) -> None:
    set_usage(world, 5)
    patient = world.context().tenant_usage
    world.shorten(usage_kept_s=0.0)
    impatient = world.context().tenant_usage
    assert (await patient.load("default")).tokens == 5
    assert (await impatient.load("default")).tokens == 5
    set_usage(world, None)

    kept = await patient.load("default")
    lost = await impatient.load("default")

    assert (kept.is_known, kept.tokens) == (True, 5)
    assert (lost.is_known, lost.has_limits) == (False, True)


async def test_a_session_that_rests_over_its_tenants_budget_goes_on_when_that_was_raised(
    world: World,
) -> None:
    """The log does not show a raised limit, so each wake checks it again."""
    set_usage(world, 10)
    await world.write(admitted("msg_1"))
    await world.drain()
    before = await world.types()
    await world.drain()
    assert (await world.session()).execution.rested == "over-budget"
    assert await world.types() == before

    world.config["tenant"]["default"]["tokens"] = 100
    await world.drain()

    assert (await world.session()).execution.rested == "idle"
