"""Fair sharing: the many wakes of a tenant do not delay the single wake of another tenant."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.ports import Job
from fairlead_eventlog.provision import provision
from fairlead_eventlog.slots import Slots
from fairlead_schema import subjects
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration

CROWD = 10_000
SLOTS = 4


async def wake_crowd(eventlog: EventLog, tenant: str) -> None:
    window = asyncio.Semaphore(256)

    async def wake() -> None:
        async with window:
            await eventlog.wakes.wake(Address(tenant, ids.session_id()))

    await asyncio.gather(*(wake() for _ in range(CROWD)))


async def test_a_single_wake_passes_a_crowd_of_another_tenant(own_server: Server) -> None:
    """Ten thousand sessions of one tenant wait; the session of another is served within a few turns."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await wake_crowd(eventlog, "crowd")
        alone, busy, served = Address("alone", ids.session_id()), list[Job](), 0
        async with asyncio.timeout(30):
            async for job in eventlog.wakes.take(Slots(SLOTS)):
                if subjects.address(job.subject) == alone:
                    break
                busy.append(job)
                served += 1
                if served == SLOTS:
                    await eventlog.wakes.wake(alone)
                if len(busy) >= SLOTS:
                    async with busy.pop(0) as oldest:
                        await oldest.ack()

    assert served - SLOTS <= 5 * SLOTS, "the single wake did not wait for the crowd"


async def test_no_more_is_taken_than_there_are_slots(own_server: Server) -> None:
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        for _ in range(40):
            await eventlog.wakes.wake(Address("default", ids.session_id()))
        jobs: list[Job] = []

        async def take() -> None:
            async for job in eventlog.wakes.take(Slots(4)):
                jobs.append(job)  # noqa: PERF401 - another task reads the list

        taking = asyncio.create_task(take())
        async with asyncio.timeout(20):
            while len(jobs) < 4:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        taking.cancel()

    assert len(jobs) == 4


async def test_a_full_runner_takes_the_next_wake_as_soon_as_a_slot_is_free(
    own_server: Server,
) -> None:
    """Wakes wait for turns, not for a periodic check: one every half second would need 20 s."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        for _ in range(40):
            await eventlog.wakes.wake(Address("default", ids.session_id()))
        assert await serve_all(40, eventlog.wakes.take, slots=1)


async def test_a_full_worker_takes_the_next_request_as_soon_as_a_slot_is_free(
    own_server: Server,
) -> None:
    """Calls wait for one another, not for a periodic check."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        for _ in range(80):
            at = Address("default", ids.session_id())
            await eventlog.work.put(subjects.tool(at, "default"), b"{}")
        take = partial(eventlog.work.take, "TOOLS", "tools-default")
        assert await serve_all(80, take, slots=2)


async def serve_all(count: int, take: Callable[[Slots], AsyncIterator[Job]], slots: int) -> bool:
    """Whether all jobs are served with so few slots in less time than periodic checks would need."""
    busy: list[asyncio.Task[None]] = []
    served = 0
    async with asyncio.timeout(10):
        async for job in take(Slots(slots)):
            busy.append(asyncio.create_task(work(job)))
            served += 1
            if served == count:
                break
        await asyncio.gather(*busy)
    return served == count


async def work(job: Job) -> None:
    async with job:
        await asyncio.sleep(0.01)
        await job.ack()


async def test_a_lane_whose_last_job_is_done_may_have_another_in_a_full_runner(
    own_server: Server,
) -> None:
    """A released job no longer counts for its lane, so the lane is idle again."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await eventlog.wakes.wake(Address("crowd", ids.session_id()))
        jobs: list[Job] = []
        alone = 0
        async with asyncio.timeout(10):
            async for job in eventlog.wakes.take(Slots(1)):
                if subjects.address(job.subject).tenant == "crowd":
                    jobs.append(job)
                else:
                    async with job:
                        await job.ack()
                    alone += 1
                if alone == 3:
                    break
                await eventlog.wakes.wake(Address("alone", ids.session_id()))
