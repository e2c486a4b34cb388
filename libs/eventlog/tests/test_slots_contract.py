"""Slots are counted: a job occupies one until its handler releases it, in memory and on JetStream."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.streams.job import PULL_EXPIRES_S
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_schema import subjects
from fairlead_schema.subjects import Address

# A pull without any news looks at its capacity every half second. A release must not wait for that.
AT_ONCE_S = 0.3
QUIET_S = 1.2

assert PULL_EXPIRES_S < QUIET_S, "a full consumer has had time to ask for more"


class Taken:
    """The jobs of one session that a consumer was given."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._arrived = asyncio.Event()

    def add(self, job: Job) -> None:
        self.jobs.append(job)
        self._arrived.set()

    async def wait_for(self, count: int, *, within_s: float = 10.0) -> None:
        async with asyncio.timeout(within_s):
            while len(self.jobs) < count:
                self._arrived.clear()
                await self._arrived.wait()


@asynccontextmanager
async def consumer(eventlog: EventLog, at: Address, slots: Slots) -> AsyncIterator[Taken]:
    """Takes prompts for ever. Prompts that other tests left are acknowledged and released."""
    taken = Taken()

    async def take() -> None:
        async for job in eventlog.work.take("PROMPTS", "ingest", slots):
            if job.subject == subjects.prompt(at):
                taken.add(job)
            else:
                async with job:
                    await job.ack()

    task = asyncio.create_task(take())
    try:
        yield taken
    finally:
        task.cancel()
        for job in taken.jobs:
            await job.ack()


async def put_prompts(eventlog: EventLog, at: Address, count: int) -> None:
    for number in range(count):
        await eventlog.work.put(subjects.prompt(at), str(number).encode())


async def test_a_released_job_frees_its_slot_at_once(eventlog: EventLog, at: Address) -> None:
    await put_prompts(eventlog, at, 2)
    async with consumer(eventlog, at, Slots(1)) as taken:
        await taken.wait_for(1)
        await taken.jobs[0].ack()

        taken.jobs[0].release()

        await taken.wait_for(2, within_s=AT_ONCE_S)


@pytest.mark.parametrize("acknowledge", [False, True], ids=["unacknowledged", "acknowledged"])
async def test_a_job_that_is_not_released_keeps_its_slot(
    eventlog: EventLog, at: Address, *, acknowledge: bool
) -> None:
    """Also when nothing refers to the job any more: slots do not wait for the garbage collector."""
    slots = Slots(1)
    await put_prompts(eventlog, at, 2)
    async with consumer(eventlog, at, slots) as taken:
        await taken.wait_for(1)
        if acknowledge:
            await taken.jobs[0].ack()
        taken.jobs.clear()
        gc.collect()

        with pytest.raises(TimeoutError):
            await taken.wait_for(1, within_s=QUIET_S)

        assert slots.free == 0


async def test_a_second_release_frees_nothing(eventlog: EventLog, at: Address) -> None:
    slots = Slots(1)
    await put_prompts(eventlog, at, 3)
    async with consumer(eventlog, at, slots) as taken:
        await taken.wait_for(1)
        await taken.jobs[0].ack()
        for _ in range(3):
            taken.jobs[0].release()
        await taken.wait_for(2)

        with pytest.raises(TimeoutError):
            await taken.wait_for(3, within_s=QUIET_S)

        assert slots.free == 0


async def test_an_exception_in_the_handler_frees_the_slot(eventlog: EventLog, at: Address) -> None:
    async def fail(job: Job) -> None:
        async with job:
            await job.ack()
            raise ValueError("a defect")

    await put_prompts(eventlog, at, 2)
    async with consumer(eventlog, at, Slots(1)) as taken:
        await taken.wait_for(1)
        with pytest.raises(ValueError, match="a defect"):
            await fail(taken.jobs[0])

        await taken.wait_for(2, within_s=AT_ONCE_S)


async def test_a_cancelled_handler_frees_the_slot(eventlog: EventLog, at: Address) -> None:
    async def hang(job: Job) -> None:
        async with job:
            await asyncio.Event().wait()

    await put_prompts(eventlog, at, 2)
    async with consumer(eventlog, at, Slots(1)) as taken:
        await taken.wait_for(1)
        handler = asyncio.create_task(hang(taken.jobs[0]))
        await asyncio.sleep(0)
        handler.cancel()

        await taken.wait_for(2, within_s=AT_ONCE_S)


async def test_a_consumer_that_starts_again_counts_its_earlier_jobs(
    eventlog: EventLog, at: Address
) -> None:
    slots = Slots(1)
    await put_prompts(eventlog, at, 2)
    async with consumer(eventlog, at, slots) as before:
        await before.wait_for(1)

    async with consumer(eventlog, at, slots) as after:
        with pytest.raises(TimeoutError):
            await after.wait_for(1, within_s=QUIET_S)
        before.jobs[0].release()
        await after.wait_for(1)


async def test_a_wake_keeps_its_slot_until_it_is_released(eventlog: EventLog, at: Address) -> None:
    """Wakes are shared between tenants. The queue is asked again at once after a release."""
    later = Address(at.tenant, f"{at.session_id}b")
    jobs = eventlog.wakes.take(Slots(1))
    await eventlog.wakes.wake(at)
    wake = await take_wake(jobs, at)
    await eventlog.wakes.wake(later)
    next_wake = asyncio.create_task(take_wake(jobs, later))

    done, _ = await asyncio.wait([next_wake], timeout=QUIET_S)
    assert not done
    await wake.ack()
    wake.release()

    async with asyncio.timeout(AT_ONCE_S), await next_wake as job:
        await job.ack()


async def take_wake(jobs: AsyncIterator[Job], at: Address) -> Job:
    async with asyncio.timeout(20):
        async for job in jobs:
            if job.subject == subjects.wake(at):
                return job
            async with job:
                await job.ack()
    raise AssertionError("the wakes ended")
