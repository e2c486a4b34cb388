"""Wakes and interrupts: a wake from before an interrupt finds no work, a later one does."""

import pytest

from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.events import (
    InterruptRequested,
    PromptPromoted,
    ResumeRequested,
    SessionEvent,
)
from services.runner.tests.conftest import World, admitted, run_consumer, wait_until


async def test_a_wake_from_before_an_interrupt_promotes_nothing(world: World) -> None:
    """C-12, C-16: the wake is redelivered after the interrupt, and the inbox stays as it is."""
    await world.write(admitted("msg_1"))
    await world.write(InterruptRequested())
    before = await world.types()

    await world.drain()

    assert await world.types() == before
    assert world.provider.requests == []
    session = await world.session()
    assert (session.execution.rested, len(session.inbox.pending)) == ("interrupted", 1)


async def test_an_interrupt_between_a_reading_and_its_claim_drops_the_wake(world: World) -> None:
    """C-12: the claim conflicts, and the second decision is to leave the session alone."""
    await world.write(admitted("msg_1"))
    written = False

    async def interrupt(_drafts: object) -> None:
        nonlocal written
        if not written:
            written = True
            await world.write(InterruptRequested())

    world.log.before = interrupt

    await world.drain()

    assert (await world.types())[-1] == "interrupt.requested"
    assert world.provider.requests == []


@pytest.mark.parametrize("what", ["prompt", "stir", "resume"])
async def test_what_is_asked_after_an_interrupt_counts(world: World, what: str) -> None:
    """C-13, C-16, A-21: a prompt, an exact retry or a resume makes the kept inbox move."""
    await world.write(admitted("msg_1"), InterruptRequested())
    requests: dict[str, SessionEvent] = {
        "prompt": admitted("msg_2"),
        "stir": ResumeRequested(forced=False),
        "resume": ResumeRequested(),
    }

    await world.write(requests[what])
    await world.drain()

    promoted = [event for event in await world.events() if isinstance(event, PromptPromoted)]
    assert [event.message_id for event in promoted][:1] == ["msg_1"]
    assert (await world.session()).inbox.pending == ()


async def test_a_stirred_queue_is_promoted_and_no_turn_is_forced(world: World) -> None:
    """A-23, B-15: an unforced resume is a wake: one turn, for the input."""
    queued = admitted("msg_1", delivery="queue").model_copy(update={"resume": False})
    await world.write(queued, ResumeRequested(forced=False))

    await world.drain()

    assert len(world.provider.requests) == 1
    assert ("user", "hello") in world.provider.messages()


async def test_a_wake_of_input_that_was_only_admitted_does_nothing(world: World) -> None:
    """A-22, C-04: the admission asked for no work; a later resume does."""
    await world.write(admitted("msg_1").model_copy(update={"resume": False}))
    before = await world.types()

    await world.drain()
    assert await world.types() == before

    await world.write(ResumeRequested(forced=False))
    await world.wake()
    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: not world.wakes)
    assert (await world.session()).inbox.pending == ()
