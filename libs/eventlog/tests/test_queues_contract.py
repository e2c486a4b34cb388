"""Wakes and work queues, tested in memory and on JetStream alike."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import Job
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.positions import (
    CARRIED_BYTES_MAX,
    parse_carried_commit,
    parse_position,
)
from fairlead_eventlog.slots import Slots
from fairlead_schema import subjects
from fairlead_schema.subjects import Address
from fairlead_service import ids


async def take_job(jobs: AsyncIterator[Job], subject: str) -> Job:
    """The first job of one subject. Jobs that other tests left are acknowledged."""
    async with asyncio.timeout(20):
        async for job in jobs:
            if job.subject == subject:
                return job
            async with job:
                await job.ack()
    raise AssertionError("the queue ended")


async def wake_until_taken(eventlog: EventLog, at: Address) -> None:
    """A replicated queue removes an acknowledged wake a moment after it has confirmed that."""
    async with asyncio.timeout(20):
        while not await eventlog.wakes.wake(at):
            await asyncio.sleep(0.02)


async def test_a_second_wake_is_refused_while_the_first_is_there(
    eventlog: EventLog, at: Address
) -> None:
    assert await eventlog.wakes.wake(at)
    assert not await eventlog.wakes.wake(at)


async def test_a_held_wake_still_refuses_and_a_finished_one_does_not(
    eventlog: EventLog, at: Address
) -> None:
    await eventlog.wakes.wake(at)
    job = await take_job(eventlog.wakes.take(Slots(100)), subjects.wake(at))

    assert subjects.address(job.subject) == at
    assert not await eventlog.wakes.wake(at)
    await job.extend()
    await job.ack()
    await wake_until_taken(eventlog, at)


async def test_a_wake_names_the_position_that_it_is_about(eventlog: EventLog, at: Address) -> None:
    """A1: its taker knows how far to read. A wake without a position has an empty body."""
    unknown = Address(at.tenant, ids.session_id())
    await eventlog.wakes.wake(at, position=12)
    await eventlog.wakes.wake(unknown)
    jobs = eventlog.wakes.take(Slots(100))

    named = await take_job(jobs, subjects.wake(at))
    assert parse_position(named.payload) == 12
    await eventlog.wakes.renew(at, position=15)

    assert parse_position((await take_job(jobs, subjects.wake(unknown))).payload) is None
    assert parse_position((await take_job(jobs, subjects.wake(at))).payload) == 15


async def test_a_wake_carries_a_small_commit_that_an_earlier_release_passes_over(
    eventlog: EventLog, at: Address
) -> None:
    """An earlier runner reads a body that is no number as one without a position: it asks the leader."""
    large = Address("default", ids.session_id())
    commit = CommitHint(12, 9, b'{"id": "cmt_1"}')
    too_large = commit._replace(payload=b"x" * (CARRIED_BYTES_MAX + 1))
    await eventlog.wakes.wake(at, position=12, commit=commit)
    await eventlog.wakes.wake(large, position=12, commit=too_large)

    jobs = eventlog.wakes.take(Slots(100))
    body = (await take_job(jobs, subjects.wake(at))).payload
    assert (parse_position(body), parse_carried_commit(body)) == (12, commit)
    assert not body.isdigit()
    body = (await take_job(jobs, subjects.wake(large))).payload
    assert (parse_position(body), parse_carried_commit(body)) == (12, None)


@pytest.mark.parametrize("body", [b"", b"12", b"12 9", b"12 9 ", b"x 9 {}", b"12 x {}", b"{}"])
def test_a_wake_without_a_whole_commit_carries_none(body: bytes) -> None:
    assert parse_carried_commit(body) is None


async def test_a_renewed_wake_is_delivered_whatever_became_of_the_first(
    eventlog: EventLog, at: Address
) -> None:
    """C-05: a wake that a killed server never delivers must not refuse all others."""
    await eventlog.wakes.wake(at)
    jobs = eventlog.wakes.take(Slots(100))
    lost = await take_job(jobs, subjects.wake(at))

    await eventlog.wakes.renew(at)

    renewed = await take_job(jobs, subjects.wake(at))
    assert renewed.sequence > lost.sequence
    assert not await eventlog.wakes.wake(at)
    await renewed.ack()
    await wake_until_taken(eventlog, at)


async def test_a_wake_that_waits_for_its_turn_keeps_its_place(
    eventlog: EventLog, at: Address
) -> None:
    """C-05: behind a crowd a wake is not lost, however long it takes."""
    behind = Address(at.tenant, f"{at.session_id}b")
    await eventlog.wakes.wake(at)
    await eventlog.wakes.wake(behind)

    assert not await eventlog.wakes.renew(at)

    jobs = eventlog.wakes.take(Slots(100))
    earlier = await take_job(jobs, subjects.wake(at))
    later = await take_job(jobs, subjects.wake(behind))
    assert earlier.sequence < later.sequence
    assert await eventlog.wakes.renew(at), "the wake was delivered, and its taker may be gone"


async def test_a_wake_put_back_is_delivered_again(eventlog: EventLog, at: Address) -> None:
    await eventlog.wakes.wake(at)
    jobs = eventlog.wakes.take(Slots(100))
    job = await take_job(jobs, subjects.wake(at))

    await job.retry_later(0.0)

    again = await take_job(jobs, subjects.wake(at))
    assert again.deliveries == 2
    assert again.sequence == job.sequence


async def test_work_is_kept_until_it_is_done(eventlog: EventLog, at: Address) -> None:
    subject = subjects.prompt(at)
    await eventlog.work.put(subject, b"one")
    jobs = eventlog.work.take("PROMPTS", "ingest", Slots(100))

    job = await take_job(jobs, subject)
    assert job.payload == b"one"
    await job.retry_later(0.0)
    job = await take_job(jobs, subject)
    await job.ack()

    await eventlog.work.put(subject, b"two")
    assert (await take_job(jobs, subject)).payload == b"two"


async def test_work_that_must_be_stored_once_is(eventlog: EventLog, at: Address) -> None:
    subject, once = subjects.prompt(at), ids.message_id()
    await eventlog.work.put(subject, b"same", once=once)
    await eventlog.work.put(subject, b"same", once=once)
    await eventlog.work.put(subject, b"last")
    jobs = eventlog.work.take("PROMPTS", "ingest", Slots(100))

    payloads = []
    for _ in range(2):
        job = await take_job(jobs, subject)
        payloads.append(job.payload)
        await job.ack()

    assert payloads == [b"same", b"last"]


async def test_a_message_is_first_when_no_earlier_one_of_its_subject_is_left(
    eventlog: EventLog, at: Address
) -> None:
    """A20: a message that somebody has and did not acknowledge is left."""
    other = Address("default", ids.session_id())
    for address in (other, at, at):
        await eventlog.work.put(subjects.prompt(address), b"{}")
    taken: list[Job] = []
    async with asyncio.timeout(20):
        async for job in eventlog.work.take("PROMPTS", "ingest", Slots(100)):
            if job.subject == subjects.prompt(at):
                taken.append(job)
            if len(taken) == 2:
                break
    first, second = sorted(taken, key=lambda job: job.sequence)

    before = [await eventlog.work.is_first("PROMPTS", job) for job in (first, second)]
    await first.ack()
    async with asyncio.timeout(20):
        # A replicated queue removes a message some time after its acknowledgement.
        while not await eventlog.work.is_first("PROMPTS", second):
            await asyncio.sleep(0.01)
    await second.ack()

    assert before == [True, False]
