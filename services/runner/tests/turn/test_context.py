"""System context at the boundary: observed first, told once, kept while a source is unavailable."""

import asyncio

import pytest

from fairlead_schema.context import ObservedSource, UnavailableSource
from fairlead_schema.events import ContextUpdated
from services.runner.tests.conftest import DATE, SYSTEM, World, admitted

TOMORROW = ObservedSource(key="core/date", value=2, baseline="Day 2", update="Now day 2")
AWAY = UnavailableSource(key="core/date", reason="hung")


async def context_updates(world: World) -> list[str]:
    return [event.text for event in await world.events() if isinstance(event, ContextUpdated)]


async def nonsense(_body: bytes) -> bytes:
    return b"not an answer"


async def refuse(_body: bytes) -> bytes:
    return b'{"error":{"_tag":"InvalidRequestError","message":"no"}}'


async def empty(_body: bytes) -> bytes:
    return b"{}"


async def hung(_body: bytes) -> bytes:
    await asyncio.Event().wait()
    raise AssertionError("never answered")


@pytest.mark.parametrize("answer", [None, nonsense, refuse, empty, hung])
async def test_without_context_the_input_stays_pending(world: World, answer: object) -> None:
    """B-20, F-27: nobody there, nonsense, a refusal or silence all rest the session."""
    world.config["runner"] = {"observe_timeout_s": 0.01}
    await world.write(admitted("msg_1"))
    world.answer(answer)  # type: ignore[arg-type]

    await world.drain()

    session = await world.session()
    assert (session.execution.rested, len(session.inbox.pending)) == ("context-unavailable", 1)
    assert await world.types(after=2) == ["execution.claimed", "execution.released"]
    assert world.provider.requests == []


async def test_a_source_that_is_away_stops_the_first_turn(world: World) -> None:
    """B-20: unavailable is not absent."""
    await world.write(admitted("msg_1"))
    world.observe(AWAY)

    await world.drain()

    assert (await world.session()).execution.rested == "context-unavailable"


async def test_once_the_context_is_back_the_input_is_answered(world: World) -> None:
    """B-20: the prompt stayed pending."""
    await world.write(admitted("msg_1"))
    world.observe(AWAY)
    await world.drain()
    world.observe(DATE)

    await world.drain()

    session = await world.session()
    assert (session.execution.rested, session.inbox.pending) == ("idle", ())


async def test_a_change_is_told_between_the_prompt_and_the_answer(world: World) -> None:
    """F-28, F-29: the baseline stays as it was, the change is one system message."""
    await world.write(admitted("msg_1", "one"))
    await world.drain()
    await world.write(admitted("msg_2", "two"))
    world.observe(TOMORROW)

    await world.drain()

    messages = world.provider.messages()
    assert messages[0] == ("system", SYSTEM)
    assert messages[-1][0] == "user"
    assert "two" in messages[-1][1]
    assert "Now day 2" in messages[-1][1]
    assert await context_updates(world) == ["Now day 2"]
    types = await world.types()
    last = len(types) - 1 - types[::-1].index("prompt.promoted")
    assert types[last : last + 4] == [
        "prompt.promoted",
        "context.updated",
        "context.advanced",
        "attempt.dispatched",
    ]


async def test_a_change_is_told_once(world: World) -> None:
    """F-42: the next boundary has nothing to add."""
    for turn, source in enumerate((DATE, TOMORROW, TOMORROW)):
        world.observe(source)
        await world.write(admitted(f"msg_{turn}"))
        await world.drain()

    assert await context_updates(world) == ["Now day 2"]


async def test_while_context_is_away_the_old_baseline_serves(world: World) -> None:
    """F-37: an epoch outlives the absence of its sources."""
    await world.write(admitted("msg_1"))
    await world.drain()
    world.answer(None)
    await world.write(admitted("msg_2"))

    await world.drain()

    assert (await world.session()).execution.rested == "idle"
    assert world.provider.messages()[0] == ("system", SYSTEM)
    assert await context_updates(world) == []


async def test_one_boundary_observes_once(world: World) -> None:
    """F-15: initialising and crossing share one sample."""
    count = 0

    async def counting(_body: bytes) -> bytes:
        nonlocal count
        count += 1
        return b'{"data":{"observations":[]}}'

    world.answer(counting)
    await world.write(admitted("msg_1"))

    await world.drain()

    assert count == 1
