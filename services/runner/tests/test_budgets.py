"""A tenant's budget: asked of the projector before each call, and never passed unseen."""

import json

import pytest

from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_eventlog.memory.timers import MemoryTimers
from fairlead_schema import subjects
from services.runner.tests.conftest import AT, World, admitted


def used(world: World, tokens: int | None) -> None:
    """What the projector answers from now on; None: nobody answers."""
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
    used(world, None)
    await world.write(admitted("msg_1"))

    await world.drained()
    resting, before = await world.session(), await world.types()
    await world.drained()

    assert (resting.execution.rested, len(resting.inbox.pending)) == ("budget-unknown", 1)
    assert world.provider.requests == []
    assert await world.types() == before, "looking again writes nothing"
    assert isinstance(world.eventlog.timers, MemoryTimers)
    assert AT in world.eventlog.timers.times

    used(world, 5)
    await world.drained()
    assert (await world.session()).execution.rested == "idle"


async def test_the_last_known_sum_stands_for_a_while_and_no_longer(world: World) -> None:
    used(world, 5)
    patient = world.context().tenant_usage
    world.shorten(usage_kept_s=0.0)
    impatient = world.context().tenant_usage
    assert (await patient.load("default")).tokens == 5
    assert (await impatient.load("default")).tokens == 5
    used(world, None)

    kept = await patient.load("default")
    lost = await impatient.load("default")

    assert (kept.known, kept.tokens) == (True, 5)
    assert (lost.known, lost.limited) == (False, True)


async def test_a_session_that_rests_over_its_tenants_budget_goes_on_when_that_was_raised(
    world: World,
) -> None:
    """The log does not say so: each wake is a chance."""
    used(world, 10)
    await world.write(admitted("msg_1"))
    await world.drained()
    before = await world.types()
    await world.drained()
    assert (await world.session()).execution.rested == "over-budget"
    assert await world.types() == before

    world.config["tenant"]["default"]["tokens"] = 100
    await world.drained()

    assert (await world.session()).execution.rested == "idle"
