"""A log that a runner cannot read: its session stops with a reason, and all others go on."""

import pytest

from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.events import SessionArchived
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_schema.subjects import Address
from fairlead_testing.newer_release import newer_commit, newer_release
from services.runner.tests.conftest import (
    AT,
    CREATED,
    World,
    admitted,
    run_consumer,
    wait_until,
)

OTHER = Address("default", "ses_2")


def gapped_commit() -> bytes:
    """A readable commit with a gap before it."""
    drafts = (Draft("evt_y", 1, SessionArchived()),)
    return encode(Commit("cmt_y", record(drafts, after=70)))


def reasons(world: World) -> list[str]:
    assert isinstance(world.eventlog.dead_letters, MemoryDeadLetters)
    return [letter[3] for letter in world.eventlog.dead_letters.letters]


@pytest.mark.parametrize(
    ("strange", "word"),
    [(b"?", "malformed"), (gapped_commit(), "71 after")],
)
@pytest.mark.parametrize("when", ["before", "attempt.dispatched", "step.started", "step.ended"])
async def test_it_is_put_aside_at_once_and_others_go_on(
    world: World, strange: bytes, word: str, when: str
) -> None:
    """H-19: whenever the strange commit comes, it causes no second provider request."""
    await world.write(admitted("msg_1"))
    await world.write(CREATED, admitted("msg_2"), at=OTHER)
    if when == "before":
        await world.log.append_raw(AT, strange)

    async def append_strange(drafts: tuple[Draft, ...]) -> None:
        if when in {draft.event.type for draft in drafts} and not reasons(world):
            world.log.before = None
            await world.log.append_raw(AT, strange)

    world.log.before = append_strange
    await world.wake()
    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: not world.wakes)
        request_count = len(world.provider.requests)
        await world.wake(OTHER)
        await wait_until(lambda: not world.wakes)

    assert word in reasons(world)[0]
    assert len(reasons(world)) == 1
    assert request_count == (0 if when in {"before", "attempt.dispatched"} else 1)
    assert [event.type for event in await world.events(OTHER)][-1] == "execution.released"


@pytest.mark.parametrize("when", ["before", "attempt.dispatched", "step.started", "step.ended"])
async def test_a_session_of_a_newer_release_is_left_to_newer_runners(
    world: World, when: str
) -> None:
    """A13: its wake stays, with growing pauses and without a dead letter. A newer runner goes on."""
    await world.write(admitted("msg_1"))
    if when == "before":
        await world.log.append_raw(AT, newer_commit(3))

    async def append_strange(drafts: tuple[Draft, ...]) -> None:
        if when in {draft.event.type for draft in drafts}:
            world.log.before = None
            await world.log.append_raw(AT, newer_commit((await world.log.head(AT)).seq + 1))

    world.log.before = append_strange
    await world.wake()
    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: world.wakes[0].deliveries > 6)
    assert reasons(world) == []
    assert world.wakes[0].delays[:6] == [1, 2, 4, 8, 16, 30]
    assert len(world.provider.requests) == (0 if when in {"before", "attempt.dispatched"} else 1)

    with newer_release():
        world.log.parse_again(AT)
        # The older runner is gone: nobody answers for it.
        world.wakes[0].expire()
        async with run_consumer(WakeConsumer(world.context("run_newer"))):
            await wait_until(lambda: not world.wakes)
        types = [event.type for event in await world.events()]
    assert types.count("weather.noted") == 1
    assert types.count("prompt.promoted") == 1
    assert types[-1] == "execution.released"
    assert reasons(world) == []


async def test_a_parent_that_cannot_be_read_does_not_stop_its_child(world: World) -> None:
    """The child rests as usual, although its parent cannot be notified."""
    child = CREATED.model_copy(update={"parent_id": AT.session_id})
    await world.write(child, admitted("msg_2"), at=OTHER)
    await world.log.append_raw(AT, gapped_commit())

    await world.wake(OTHER)
    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: not world.wakes)

    assert reasons(world) == []
    assert [event.type for event in await world.events(OTHER)][-1] == "execution.released"
