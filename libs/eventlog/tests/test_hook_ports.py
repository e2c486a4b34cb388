"""Records and consumers of the feed, tested in memory and on JetStream alike."""

import asyncio
from contextlib import aclosing
from typing import Any, cast

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import RecordChanged
from fairlead_eventlog.feed.consumer_ports import FeedFilter
from fairlead_eventlog.ports import FeedItem, Job
from fairlead_eventlog.slots import Slots
from fairlead_schema import subjects
from fairlead_schema.subjects import Address
from fairlead_service import ids


async def test_several_writers_change_a_record_one_after_the_other(eventlog: EventLog) -> None:
    records, tenant, key = eventlog.webhooks, "acme", ids.webhook_id()
    first = await records.replace(tenant, key, b"one", revision=0)

    with pytest.raises(RecordChanged):
        await records.replace(tenant, key, b"other", revision=0)
    second = await records.replace(tenant, key, b"two", revision=first)
    with pytest.raises(RecordChanged):
        await records.replace(tenant, key, b"other", revision=first)
    assert await records.read(tenant, key) == (b"two", second)
    assert await records.read("elsewhere", key) is None
    assert (await records.get_all(tenant))[key] == b"two"
    await records.remove(tenant, key)
    assert await records.read(tenant, key) is None
    assert await records.replace(tenant, key, b"new", revision=0) > 0


async def test_whoever_watches_hears_of_a_changed_record(eventlog: EventLog) -> None:
    heard: list[str | None] = []
    await eventlog.schedules.watch(heard.append)
    await eventlog.schedules.replace("acme", ids.schedule_id(), b"{}", revision=0)

    async with asyncio.timeout(10):
        while "acme" not in heard:
            await asyncio.sleep(0.01)


def item(at: Address, type_: str) -> FeedItem:
    return FeedItem(subjects.event(at, type_), ids.event_id(), b"{}")


def wanted(tenant: str, after: int) -> FeedFilter:
    return FeedFilter(tenant, f"hook={tenant}={ids.webhook_id()}", ("step.ended",), after, 30.0, 10)


async def take(eventlog: EventLog, name: str, count: int) -> list[Job]:
    """The next events of a consumer."""
    jobs: list[Job] = []
    stream = eventlog.feed_consumers.take(name, Slots(8))
    async with asyncio.timeout(20), aclosing(cast("Any", stream)) as taken:
        async for job in taken:
            jobs.append(job)
            if len(jobs) == count:
                return jobs
    raise AssertionError


async def test_a_consumer_of_the_feed_keeps_its_place(eventlog: EventLog) -> None:
    """It begins where it was told, gets its types of its tenant, and goes on after a restart."""
    tenant = f"t{ids.webhook_id()[4:16]}"
    at, foreign = Address(tenant, ids.session_id()), Address("other", ids.session_id())
    await eventlog.feed.publish([item(at, "step.ended")])
    filter_ = wanted(tenant, await eventlog.feed_consumers.last_sequence())
    await eventlog.feed_consumers.open(filter_)
    sent = [item(at, "step.ended"), item(at, "step.ended")]
    await eventlog.feed.publish([item(foreign, "step.ended"), item(at, "text.ended"), *sent])

    first, second = await take(eventlog, filter_.name, 2)
    assert first.sequence < second.sequence
    stored = await eventlog.feed_consumers.message_at(first.sequence)
    assert stored is not None
    assert stored.subject == sent[0].subject
    await first.ack()
    await second.retry_later(0)
    # Opening again changes nothing about the place.
    await eventlog.feed_consumers.open(filter_)
    [again] = await take(eventlog, filter_.name, 1)
    assert (again.sequence, again.deliveries) == (second.sequence, 2)
    await again.ack()

    assert filter_.name in await eventlog.feed_consumers.names()
    await eventlog.feed_consumers.remove(filter_.name)
    await eventlog.feed_consumers.remove(filter_.name)
    assert filter_.name not in await eventlog.feed_consumers.names()


async def test_a_consumer_gets_the_types_that_it_has_now(eventlog: EventLog) -> None:
    tenant = f"t{ids.webhook_id()[4:16]}"
    at = Address(tenant, ids.session_id())
    filter_ = wanted(tenant, await eventlog.feed_consumers.last_sequence())
    await eventlog.feed_consumers.open(filter_)
    more = FeedFilter(tenant, filter_.name, ("step.ended", "step.failed"), filter_.after, 30.0, 10)
    await eventlog.feed_consumers.open(more)
    await eventlog.feed.publish([item(at, "step.failed"), item(at, "step.ended")])

    jobs = await take(eventlog, filter_.name, 2)
    assert [job.subject.split(".", 4)[4] for job in jobs] == ["step.failed", "step.ended"]
    await eventlog.feed_consumers.remove(filter_.name)
