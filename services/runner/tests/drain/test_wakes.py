"""What a runner makes of a wake: the commit that it carries, and the next wake that comes at its end."""

from dataclasses import dataclass

import pytest

from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.memory.wakes import MemoryWakes
from fairlead_eventlog.ports import CommitPage, Head
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.events import PromptPromoted
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_schema.subjects import Address
from fairlead_service import ids
from services.runner.tests.conftest import AT, World, admitted, events_of, run_consumer, wait_until


@dataclass
class ReadCount:
    """How often the log was read."""

    reads: int = 0


@pytest.fixture
def counted(world: World, monkeypatch: pytest.MonkeyPatch) -> ReadCount:
    """Counts the reads of the world's log. A look at the leader's end is none."""
    count, read = ReadCount(), world.log.read

    async def read_and_count(
        at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        count.reads += 1
        return await read(at, after=after, limit=limit, reach=reach)

    monkeypatch.setattr(world.log, "read", read_and_count)
    return count


async def admit_with_commit(world: World, id_: str) -> CommitHint:
    """Admit a prompt. The answer is its commit, as ingest lets a wake carry it."""
    before = await world.log.head(AT)
    await world.write(admitted(id_))
    (stored,) = (await MemoryLog.read(world.log, AT, after=before)).commits
    return CommitHint(stored.position, before.position, encode(stored.commit))


async def wake_and_drain(world: World, carried: CommitHint) -> None:
    await world.eventlog.wakes.wake(AT, commit=carried)
    await wait_until(lambda: not world.wakes)


async def assert_answered(world: World, *message_ids: str) -> None:
    promoted = events_of(await world.events(), PromptPromoted)
    assert [event.message_id for event in promoted] == list(message_ids)
    assert (await world.session()).execution.rested == "idle"


async def test_a_runner_that_has_all_before_the_commit_of_a_wake_reads_nothing(
    world: World, counted: ReadCount
) -> None:
    async with run_consumer(WakeConsumer(world.context())):
        await wake_and_drain(world, await admit_with_commit(world, "msg_1"))
        carried, counted.reads = await admit_with_commit(world, "msg_2"), 0
        await wake_and_drain(world, carried)

    assert counted.reads == 0
    await assert_answered(world, "msg_1", "msg_2")


async def test_a_stale_commit_in_a_wake_changes_nothing(world: World) -> None:
    """The wake is delivered late: the log has moved on, and refuses what is decided from the commit."""
    first = world.context("run_a")
    async with run_consumer(WakeConsumer(first)):
        await wake_and_drain(world, await admit_with_commit(world, "msg_1"))
    carried = await admit_with_commit(world, "msg_2")
    await world.drain("run_b")

    async with run_consumer(WakeConsumer(first)):
        await wake_and_drain(world, carried)

    await assert_answered(world, "msg_1", "msg_2")


async def test_a_runner_that_lacks_something_before_the_commit_reads_the_log(
    world: World, counted: ReadCount
) -> None:
    async with run_consumer(WakeConsumer(world.context())):
        await wake_and_drain(world, await admit_with_commit(world, "msg_1"))
        await world.write(admitted("msg_2"))
        carried, counted.reads = await admit_with_commit(world, "msg_3"), 0
        await wake_and_drain(world, carried)

    assert counted.reads > 0
    await assert_answered(world, "msg_1", "msg_2", "msg_3")


@pytest.mark.parametrize("payload", [b"?", b'{"id": "cmt_1", "events": []}'])
async def test_a_commit_that_cannot_be_read_leaves_it_to_the_log(
    world: World, payload: bytes
) -> None:
    async with run_consumer(WakeConsumer(world.context())):
        await wake_and_drain(world, await admit_with_commit(world, "msg_1"))
        carried = await admit_with_commit(world, "msg_2")
        await wake_and_drain(world, carried._replace(payload=payload))

    await assert_answered(world, "msg_1", "msg_2")


async def test_a_wake_that_comes_again_is_answered_from_the_log(
    world: World, counted: ReadCount
) -> None:
    """Whoever had the wake before may have written since."""
    context = world.context()
    async with run_consumer(WakeConsumer(context)):
        await wake_and_drain(world, await admit_with_commit(world, "msg_1"))
    carried, counted.reads = await admit_with_commit(world, "msg_2"), 0
    await world.eventlog.wakes.wake(AT, commit=carried)
    (wake,) = world.wakes
    wake.deliveries = 1

    async with run_consumer(WakeConsumer(context)):
        await wait_until(lambda: not world.wakes)

    assert counted.reads > 0
    await assert_answered(world, "msg_1", "msg_2")


async def test_the_next_wake_is_served_as_soon_as_the_look_at_the_end_is_done(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-05: ingest left it between the acknowledgement and the look, so the runner sends none."""
    monkeypatch.setattr("fairlead_runner.wake_end.WAKE_AGAIN_S", (3600.0,))
    last_position, prompted = world.log.last_commit_position, False
    wakes = world.eventlog.wakes
    assert isinstance(wakes, MemoryWakes)

    async def prompt_meanwhile(at: Address) -> int:
        nonlocal prompted
        if not prompted and not wakes.queue.messages and world.provider.requests:
            prompted = True
            await world.write(admitted("msg_2"))
            await world.wake()
        return await last_position(at)

    monkeypatch.setattr(world.log, "last_commit_position", prompt_meanwhile)
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: len(world.provider.requests) == 2 and not world.wakes)

    await assert_answered(world, "msg_1", "msg_2")


async def test_a_commit_that_the_log_never_had_is_given_up_for_the_log(world: World) -> None:
    """The wake is older than a restore of the log, which ends before the commit that it carries."""
    async with run_consumer(WakeConsumer(world.context())):
        await wake_and_drain(world, await admit_with_commit(world, "msg_1"))
        head = await world.log.head(AT)
        phantom = Commit(
            id=ids.commit_id(),
            events=record((Draft(ids.event_id(), 1, admitted("msg_lost")),), after=head.seq),
        )
        lost = CommitHint(head.position + 1, head.position, encode(phantom))
        await wake_and_drain(world, lost)
        await wake_and_drain(world, await admit_with_commit(world, "msg_2"))

    await assert_answered(world, "msg_1", "msg_2")


async def test_a_wake_is_left_to_a_queue_that_is_slow_to_forget_the_last_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-05: a replicated queue refuses the next wake until it has removed the acknowledged one."""
    wakes, last_position = world.eventlog.wakes, world.log.last_commit_position
    assert isinstance(wakes, MemoryWakes)
    refusals, prompted = 5, False
    wake = wakes.wake

    async def refuse_first(
        at: Address, *, position: int | None = None, commit: CommitHint | None = None
    ) -> bool:
        nonlocal refusals
        if prompted and refusals:
            refusals -= 1
            return False
        return await wake(at, position=position, commit=commit)

    async def prompt_meanwhile(at: Address) -> int:
        nonlocal prompted
        if not prompted and not wakes.queue.messages and world.provider.requests:
            prompted = True
            await world.write(admitted("msg_2"))
        return await last_position(at)

    monkeypatch.setattr(wakes, "wake", refuse_first)
    monkeypatch.setattr(world.log, "last_commit_position", prompt_meanwhile)
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: len(world.provider.requests) == 2 and not world.wakes)

    await assert_answered(world, "msg_1", "msg_2")
