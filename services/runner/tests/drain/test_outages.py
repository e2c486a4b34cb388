"""Disturbances during a turn: outages, lost nudges, prompts that come while the turn fails."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpx
import pytest
from starlette.responses import Response
from typing_extensions import override

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_eventlog.ports import CommitPage, Head
from fairlead_eventlog.process_life import Nudge
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.events import (
    ContextSnapshotAdvanced,
    InterruptRequested,
    ResumeRequested,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
)
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from services.runner.tests.conftest import (
    AT,
    WatchedLog,
    World,
    admitted,
    error_reply,
    run_consumer,
    text_reply,
    wait_until,
)


class HeldReply:
    """A reply that waits until it is set free."""

    def __init__(self, reply: Response) -> None:
        self._reply = reply
        self.free = asyncio.Event()
        self.cancelled = False

    async def __call__(self) -> Response:
        try:
            await self.free.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return self._reply


class SlowBody(httpx.AsyncByteStream):
    """A body whose first frames come some time before the others."""

    def __init__(self, whole: Response) -> None:
        self._frames = bytes(whole.body).split(b"\n\n")

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for frame in self._frames:
            yield frame + b"\n\n"
            await asyncio.sleep(0.01)


@contextmanager
def failing_reads(log: WatchedLog) -> Iterator[None]:
    """Reads fail while the block runs."""

    async def read(at: Address, *, after: Head, limit: int = 500, reach: int = 0) -> CommitPage:
        raise LogUnavailable(f"{at} {after} {limit} {reach}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "read", read)
        yield


async def test_a_nudge_during_an_outage_does_not_cost_the_turn(world: World) -> None:
    reply = HeldReply(text_reply("first"))
    world.provider.replies.append(reply)
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context())

    async with run_consumer(consumer):
        await wait_until(lambda: len(world.provider.requests) == 1)
        with failing_reads(world.log):
            consumer.nudge(Nudge(AT))
            for _ in range(20):
                await asyncio.sleep(0.001)
        reply.free.set()
        await wait_until(lambda: not world.wakes)

    assert len(world.provider.requests) == 1
    assert sum(isinstance(event, StepEnded) for event in await world.events()) == 1


async def test_an_interrupt_whose_nudge_was_lost_is_honoured(world: World) -> None:
    """C-12: the interrupt is durable; the nudge only makes the runner see it sooner."""
    world.shorten(interrupt_look_s=0.01)
    reply = HeldReply(text_reply("never"))
    world.provider.replies.append(reply)
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: len(world.provider.requests) == 1)
        await world.write(InterruptRequested())
        await wait_until(lambda: not world.wakes)

    assert (await world.session()).execution.rested == "interrupted"
    assert reply.cancelled


async def test_a_steer_during_a_turn_that_fails_is_answered_after_it(world: World) -> None:
    """C-08: after a failure with a wake pending, one fresh drain follows."""
    reply = HeldReply(error_reply(400, "no"))
    world.provider.replies.append(reply)
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context())

    async with run_consumer(consumer):
        await wait_until(lambda: len(world.provider.requests) == 1)
        await world.write(admitted("msg_2", "and this"))
        consumer.nudge(Nudge(AT))
        for _ in range(20):
            await asyncio.sleep(0.001)
        reply.free.set()
        await wait_until(lambda: not world.wakes)

    assert "and this" in await world.texts()


async def test_a_queued_input_from_before_a_failure_stays_pending(world: World) -> None:
    """B-24: a raised failure fails the drain, and the queued input stays pending."""
    world.provider.replies.append(error_reply(400, "no"))
    await world.write(admitted("msg_1"), admitted("msg_2", "later", "queue"))

    await world.drain()

    session = await world.session()
    assert session.execution.rested == "failed"
    assert [item.message_id for item in session.inbox.pending] == ["msg_2"]


async def test_a_resume_during_the_cleanup_of_an_interrupt_runs_after_it(world: World) -> None:
    """C-14: the resume waits for the cleanup, then starts a new forced drain."""
    reply = HeldReply(text_reply("never"))
    world.provider.replies.append(reply)
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context())

    async with run_consumer(consumer):
        await wait_until(lambda: len(world.provider.requests) == 1)
        await world.write(InterruptRequested())
        await world.write(ResumeRequested())
        consumer.nudge(Nudge(AT))
        await wait_until(lambda: not world.wakes)
        await world.drain()

    assert len(world.provider.requests) == 2


async def test_a_write_under_way_survives_the_end_of_the_grace_time(world: World) -> None:
    """A commit that was under way when the grace time ended is written, and no event after it is lost."""
    world.config["runner"] = {"grace_s": 0.1}
    blocked, free = asyncio.Event(), asyncio.Event()

    async def before(drafts: tuple[Draft, ...]) -> None:
        if any(isinstance(draft.event, StepStarted) for draft in drafts):
            blocked.set()
            await free.wait()

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=SlowBody(text_reply("first")))

    world.log.before = before
    await world.write(admitted("msg_1"))
    await world.wake()
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        world.client = client
        consumer = WakeConsumer(world.context())
        async with run_consumer(consumer):
            await wait_until(blocked.is_set)
            asyncio.get_running_loop().call_later(0.15, free.set)

    events = await world.events()
    assert [event.text for event in events if isinstance(event, TextEnded)] == ["first"]
    assert sum(isinstance(event, StepEnded | StepFailed) for event in events) == 1
    session = await world.session()
    assert session.execution.owner is None
    assert not session.execution.owed


async def test_a_runner_that_could_not_write_goes_on_by_itself(world: World) -> None:
    """No other runner takes a session whose owner lives, so the owner tries again itself."""
    world.shorten(log_retry_s=0.001)

    async def before(drafts: tuple[Draft, ...]) -> None:
        if any(isinstance(draft.event, StepEnded) for draft in drafts):
            world.log.before = None
            raise LogUnavailable("no acknowledgement")

    world.log.before = before
    await world.write(admitted("msg_1"))

    await world.drain()

    session = await world.session()
    assert (session.execution.rested, session.execution.owner) == ("idle", None)


async def test_a_session_whose_fold_fails_stops_with_a_reason_and_does_not_loop(
    world: World,
) -> None:
    """H-19: every runner would fail alike, so the session becomes a dead letter for an operator."""
    await world.write(admitted("msg_1"), ContextSnapshotAdvanced(snapshot={}))
    await world.wake()
    (job,) = world.wakes

    async with run_consumer(WakeConsumer(world.context())):
        while world.wakes and job.deliveries < 10:
            await asyncio.sleep(0.01)
            job.expire()

    assert isinstance(world.eventlog.dead_letters, MemoryDeadLetters)
    (letter,) = world.eventlog.dead_letters.letters
    assert world.wakes == []
    assert "a snapshot advances inside an epoch" in letter[3]
