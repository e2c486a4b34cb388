"""Titles beside the work: one request after the first answer, durable, and not on anybody's way."""

import asyncio
from typing import Any

import pytest
from starlette.responses import Response

from fairlead_eventlog.memory.timers import MemoryTimers
from fairlead_runner.titles import Titles
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import BudgetSet, ExecutionReleased, TitleEnded, TitleRequested
from fairlead_session.info import info
from fairlead_session.input.prompt_title import unnamed_title
from services.runner.tests.conftest import (
    AT,
    CREATED,
    World,
    admitted,
    error_reply,
    run_consumer,
    text_reply,
)

UNNAMED = CREATED.model_copy(update={"title": unnamed_title("2026-01-01T00:00:00.000Z")})
SMALL = ModelRef(provider_id="acme", id="small")


@pytest.fixture
async def titled(world: World) -> World:
    """A new session, and a configuration with a small model."""
    world.config["provider"]["acme"]["model"]["small"] = {"id": "small-1"}
    world.config["small_model"] = "acme/small"
    await world.eventlog.status.finalise(2)
    await world.write(UNNAMED)
    return world


async def run_until(world: World, *kinds: type) -> None:
    """Drain until events of these kinds are in the log, and no wake is left."""
    await world.wake()
    async with run_consumer(WakeConsumer(world.context())), asyncio.timeout(10):
        while world.wakes or not {*kinds} <= {type(event) for event in await world.events()}:
            await asyncio.sleep(0.005)


def timers(world: World) -> dict[Any, int]:
    assert isinstance(world.eventlog.timers, MemoryTimers)
    return world.eventlog.timers.times


async def test_a_title_follows_the_first_answer_and_no_other(titled: World) -> None:
    """P-28: after the rest, with its usage; the second turn asks for none."""
    titled.provider.replies.extend([text_reply("hello"), text_reply("A greeting")])
    await titled.write(admitted("msg_1", "say hello"))

    await run_until(titled, TitleEnded)
    await titled.prompt("msg_2", "again")

    types = await titled.types()
    assert types.index("execution.released") < types.index("title.requested")
    assert types.index("title.requested") + 1 == types.index("title.ended")
    assert (types.count("title.requested"), types.count("title.ended")) == (1, 1)
    session = await titled.session()
    assert info(session).title == "A greeting"
    assert [request["model"] for request in titled.provider.requests] == [
        "fast-1",
        "small-1",
        "fast-1",
    ]


async def test_a_prompt_does_not_wait_for_a_title(titled: World) -> None:
    """P-28: off the critical path: the second answer comes while the small model thinks."""
    thinking = asyncio.Event()

    async def think() -> Response:
        await thinking.wait()
        return text_reply("Late but good")

    titled.provider.replies.extend([text_reply("one"), think, text_reply("two")])
    await titled.write(admitted("msg_1", "first"))
    async with run_consumer(WakeConsumer(titled.context())), asyncio.timeout(10):
        await titled.wake()
        while len(titled.provider.requests) < 2:
            await asyncio.sleep(0.005)
        await titled.write(admitted("msg_2", "second"))
        await titled.wake()
        while (await titled.types()).count("execution.released") < 2:
            await asyncio.sleep(0.005)
        assert "title.ended" not in await titled.types()
        thinking.set()
        while "title.ended" not in await titled.types():
            await asyncio.sleep(0.005)

    assert info(await titled.session()).title == "Late but good"


@pytest.mark.parametrize("change", ["no small model", "not finalised", "over budget", "named"])
async def test_without_model_level_budget_or_need_there_is_no_request(
    world: World, change: str
) -> None:
    """P-28: the first words stay, and nothing is recorded."""
    world.config["provider"]["acme"]["model"]["small"] = {}
    if change != "no small model":
        world.config["small_model"] = "acme/small"
    if change != "not finalised":
        await world.eventlog.status.finalise(2)
    await world.write(CREATED if change == "named" else UNNAMED)
    if change == "over budget":
        await world.write(BudgetSet(cost=0.001))
    await world.write(admitted("msg_1", "say hello"))

    await run_until(world, ExecutionReleased)
    titles = Titles(world.context())
    if await titles.arm(AT, await world.session()):
        titles.start(AT)
        await asyncio.sleep(0.05)
        await titles.shutdown()

    assert not {"title.requested", "title.ended"} & {*await world.types()}
    assert info(await world.session()).title == ("t" if change == "named" else "say hello")


async def test_a_refused_title_is_recorded_and_the_words_stay(titled: World) -> None:
    titled.provider.replies.extend([text_reply("hello"), error_reply(400, "no such model")])
    await titled.write(admitted("msg_1", "say hello"))

    await run_until(titled, TitleEnded)

    (ended,) = [event for event in await titled.events() if isinstance(event, TitleEnded)]
    assert (ended.title, ended.message) == (None, "no such model")
    assert info(await titled.session()).title == "say hello"


async def test_a_title_that_its_runner_left_is_made_by_another_when_the_timer_fires(
    titled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-28: the attempt and the timer outlive the runner; the title is set once."""
    titled.config["runner"] = {"title_timeout_s": 0.05}
    titled.provider.replies.append(text_reply("hello"))
    await titled.write(admitted("msg_1", "say hello"))
    monkeypatch.setattr(Titles, "start", lambda _self, _at: None)
    await run_until(titled, ExecutionReleased)
    assert AT in timers(titled), "the timer is there before the wake is acknowledged"
    await titled.write(TitleRequested(attempt_id="att_dead", model=SMALL))
    monkeypatch.undo()
    await asyncio.sleep(0.15)
    titled.provider.replies.append(text_reply("A greeting"))

    await run_until(titled, TitleEnded)

    ended = [event for event in await titled.events() if isinstance(event, TitleEnded)]
    assert len(ended) == 1
    assert ended[0].attempt_id != "att_dead"
