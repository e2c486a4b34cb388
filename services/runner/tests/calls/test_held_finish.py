"""The end of a stream whose calls are durable already: it waits a moment to join the next commit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest
from typing_extensions import override

from fairlead_runner.drain import call_wait
from fairlead_runner.drain.staged_writer import HeldFact, StagedWriter
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.events import InterruptRequested, SessionEvent
from services.runner.tests.conftest import AT, World, admitted, run_consumer, text_reply, wait_until
from services.runner.tests.tool_calls import call_reply, offer_tool, tool_succeeded, wait_for_event

LONG_S = 60.0


class PausedProvider(httpx.AsyncBaseTransport):
    """A provider whose first answer makes a call, and ends when the call is durable; others say ok."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.requests = 0

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        answer = call_reply("c1") if self.requests == 1 else text_reply("thanks")
        pieces = bytes(answer.body).rpartition(b"data: ")
        headers = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, content=self._send(*pieces))

    async def _send(self, first: bytes, separator: bytes, last: bytes) -> AsyncIterator[bytes]:
        yield first
        await wait_for_event(self._world, "tool.called" if self.requests == 1 else "step.started")
        yield separator + last


@pytest.fixture
def provider(world: World) -> PausedProvider:
    offer_tool(world)
    provider = PausedProvider(world)
    world.client = httpx.AsyncClient(transport=provider)
    return provider


async def commits(world: World) -> list[list[str]]:
    """The types of each commit."""
    page = await world.log.read(AT, after=(await world.log.locate(AT, 0)))
    return [[one.event.type for one in stored.commit.events] for stored in page.commits]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when a runner holds the end of a stream, which it then does for long."""
    monkeypatch.setattr(call_wait, "HOLD_S", LONG_S)
    holding, hold = asyncio.Event(), StagedWriter.hold

    def note(writer: StagedWriter, fact: HeldFact) -> None:
        hold(writer, fact)
        holding.set()

    monkeypatch.setattr(StagedWriter, "hold", note)
    return holding


async def held_call(world: World, held: asyncio.Event) -> SessionEvent:
    """The called event, once the stream behind it has ended and is not written."""
    await held.wait()
    assert "attempt.finished" not in await world.types()
    return await wait_for_event(world, "tool.called")


async def test_the_end_of_a_stream_joins_the_commit_after_its_quick_calls(
    world: World, provider: PausedProvider, held: asyncio.Event
) -> None:
    """E-03, P-06: no commit of its own, and the next turn begins in the same one."""
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        await world.write(tool_succeeded(await held_call(world, held)))
        await wait_until(lambda: not world.wakes)

    (joined,) = (types for types in await commits(world) if "attempt.finished" in types)
    assert joined == ["attempt.finished", "step.ended", "attempt.dispatched"]
    session = await world.session()
    assert (session.execution.rested, provider.requests) == ("idle", 2)


async def test_the_end_of_a_stream_is_written_when_its_calls_take_longer(
    world: World, provider: PausedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B-24: whoever takes over while a call runs calls no provider for this step."""
    monkeypatch.setattr(call_wait, "HOLD_S", 0.01)
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        finished = await wait_for_event(world, "attempt.finished")
        await world.write(tool_succeeded(finished))
        await wait_until(lambda: not world.wakes)

    assert ["attempt.finished"] in await commits(world)
    assert provider.requests == 2


@pytest.mark.usefixtures("provider")
async def test_a_prompt_in_between_does_not_lose_the_end_of_a_stream(
    world: World, held: asyncio.Event
) -> None:
    """B-24: decisions are dropped with the state they were made from. A fact is not."""
    before = world.log.before
    added = False

    async def admit_first(drafts: object) -> None:
        nonlocal added
        types = [draft.event.type for draft in drafts]  # type: ignore[attr-defined]
        if "attempt.finished" in types and not added:
            added = True
            await world.write(admitted("msg_2", "more"))

    assert before is None
    world.log.before = admit_first
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        await world.write(tool_succeeded(await held_call(world, held)))
        await wait_until(lambda: not world.wakes)

    types = await world.types()
    assert added
    assert (types.count("attempt.finished"), types.count("step.failed")) == (1, 0)
    assert "execution.recovered" not in types


async def test_an_interrupt_in_between_ends_the_step_as_its_stream_said(
    world: World, provider: PausedProvider, held: asyncio.Event
) -> None:
    """E-16: the call is interrupted, and what the stream used is counted."""
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        await held_call(world, held)
        await world.write(InterruptRequested())
        await wait_until(lambda: not world.wakes)

    types = await world.types()
    assert types[-4:] == ["attempt.finished", "tool.failed", "step.ended", "execution.released"]
    assert provider.requests == 1


async def test_a_runner_that_leaves_writes_what_it_holds(
    world: World, provider: PausedProvider, held: asyncio.Event
) -> None:
    """A13: the next owner ends the step, and calls no provider for it again."""
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        called = await held_call(world, held)

    types = await world.types()
    assert types.index("attempt.finished") < types.index("execution.released")
    await world.write(tool_succeeded(called))
    await world.drain("run_b")
    assert (await world.types()).count("step.ended") == 2
    assert provider.requests == 2


@pytest.mark.usefixtures("provider")
async def test_a_runner_that_dies_with_it_leaves_a_turn_that_is_recovered(
    world: World, held: asyncio.Event
) -> None:
    """B-24: like a death just before the stream ended. The call's result is kept."""
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context("run_dead"))
    running = asyncio.create_task(consumer.run())
    called = await held_call(world, held)
    world.log.before = _fail  # A dead runner writes nothing more.
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.sleep(0)
    world.log.before = None

    await world.write(tool_succeeded(called))
    for wake in world.wakes:
        wake.expire()
    async with run_consumer(WakeConsumer(world.context("run_b"))):
        await wait_until(lambda: not world.wakes)

    types = await world.types()
    assert "execution.recovered" in types
    assert types.count("tool.succeeded") == 1
    assert (await world.session()).execution.rested == "idle"


async def _fail(_drafts: object) -> None:
    raise asyncio.CancelledError
