"""Back-off: waited for in the drain or on a timer, and cut short by a steer or an interrupt."""

import asyncio

from starlette.responses import Response

from fairlead_eventlog.process_life import Nudge
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.events import (
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
    PromptPromoted,
    SessionPurged,
    TurnRetried,
)
from fairlead_schema.events.turn import RetryError
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft
from fairlead_service import ids
from services.runner.tests.conftest import (
    AT,
    World,
    admitted,
    error_reply,
    run_consumer,
    text_reply,
    wait_until,
)


def busy_reply(*, retry_after: float) -> Response:
    answer = error_reply(429, "busy")
    answer.headers["retry-after"] = str(retry_after)
    return answer


CLAIMED = ExecutionClaimed(generation=1, runner="run_old")
PROMOTED = PromptPromoted(message_id="msg_1", prompt=Prompt(text="hello"), created=1)
RETRIED = TurnRetried(attempt=1, error=RetryError(message="busy", is_retryable=True))


async def test_a_short_back_off_is_waited_out(world: World) -> None:
    """D-43: no request is sent again before the time that the provider named."""
    world.provider.replies.extend([busy_reply(retry_after=0.2), text_reply("hello")])
    await world.write(admitted("msg_1"))

    await world.drain()

    times = {recorded.event.type: recorded.time for recorded in await world.read_log()}
    assert times["attempt.dispatched"] - times["retried"] >= 190
    assert (await world.session()).execution.rested == "idle"


async def test_an_interrupt_ends_a_short_back_off_at_once(world: World) -> None:
    """C-12: after an interrupt no attempt follows, so the pause ends."""
    world.config["runner"] = {"park_after_s": 1000}
    world.provider.replies.append(busy_reply(retry_after=250))
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context())

    async with run_consumer(consumer):
        async with asyncio.timeout(5):
            while "retried" not in await world.types():
                await asyncio.sleep(0.001)
        await world.write(InterruptRequested())
        consumer.nudge(Nudge(AT))
        await wait_until(lambda: not world.wakes)

    assert (await world.session()).execution.rested == "interrupted"
    assert len(world.provider.requests) == 1


async def test_a_queued_prompt_does_not_cut_a_back_off_short(world: World) -> None:
    """D-43, B-11: neither before nor after the session rests; a steer joins the turn and ends the pause."""
    world.config["runner"] = {"park_after_s": 0}
    world.provider.replies.extend([busy_reply(retry_after=60), text_reply("hello")])
    await world.write(admitted("msg_1"))

    async def queue_one(drafts: tuple[Draft, ...]) -> None:
        if isinstance(drafts[0].event, ExecutionReleased):
            world.log.before = None
            await world.write(admitted("msg_q1", delivery="queue"))

    world.log.before = queue_one
    await world.drain()
    await world.write(admitted("msg_q2", delivery="queue"))
    await world.drain()

    session = await world.session()
    assert (session.execution.rested, len(session.inbox.pending)) == ("retry-later", 2)
    assert len(world.provider.requests) == 1

    await world.write(admitted("msg_s"))
    await world.drain()

    assert len(world.provider.requests) >= 2
    assert (await world.session()).inbox.pending == ()


async def test_an_interrupt_just_before_a_long_back_off_is_honoured(world: World) -> None:
    """C-12: the interrupt comes between the retry and the rest, and no attempt follows."""
    world.config["runner"] = {"park_after_s": 0}
    world.provider.replies.append(busy_reply(retry_after=60))
    await world.write(admitted("msg_1"))

    async def interrupt(drafts: tuple[Draft, ...]) -> None:
        if isinstance(drafts[0].event, ExecutionReleased):
            world.log.before = None
            await world.write(InterruptRequested())

    world.log.before = interrupt
    await world.drain()

    assert (await world.session()).execution.rested == "interrupted"
    assert len(world.provider.requests) == 1


async def test_a_timer_that_rings_a_little_early_is_not_lost(world: World) -> None:
    """P-04: the server's clock may be ahead of the runner's, and no second wake would come."""
    await world.write(admitted("msg_1"), PROMOTED, CLAIMED, RETRIED)
    soon = ids.now_ms() + 150
    await world.write(ExecutionReleased(generation=1, reason="retry-later", wake_at=soon))

    await world.drain()

    claims = [
        recorded.time
        for recorded in await world.read_log()
        if recorded.event.type == "execution.claimed"
    ]
    assert claims[1] >= soon
    assert (await world.session()).execution.rested == "idle"


async def test_a_timer_of_a_session_that_is_gone_rings_for_nobody(world: World) -> None:
    """The session was deleted: its wake is dropped, also when it comes twice."""
    await world.write(SessionPurged())
    before = await world.types()

    for _ in range(2):
        await world.drain()

    assert world.provider.requests == []
    assert await world.types() == before
