"""The one consumer of wakes: made again when it is gone, and made of the lanes of older releases."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from fairlead_eventlog.errors import ConsumerMissing
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.pull import CONFLICT_PAUSE_S, LEADERLESS_PAUSE_S, Pull
from fairlead_eventlog.ports import Job
from fairlead_eventlog.provision import provision
from fairlead_eventlog.slots import Slots
from fairlead_eventlog.streams import ConsumerSpec, consumer_config
from fairlead_schema import subjects
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration

CONSUMER = "WAKES.runner-default"


def session_of(tenant: str) -> Address:
    return Address(tenant, ids.session_id())


async def next_job(jobs: AsyncIterator[Job]) -> Job:
    async with asyncio.timeout(20):
        return await anext(jobs)


async def make_old_lanes(link: NatsLink, *tenants: str) -> None:
    """The consumers of the release before this one: one for each tenant."""
    with suppress(Exception):
        await link.api(f"CONSUMER.DELETE.{CONSUMER}")
    for tenant in tenants:
        spec = ConsumerSpec(
            "WAKES",
            f"runner-{tenant}",
            ack_wait_s=2.0,
            max_ack_pending=100_000,
            filter_subject=f"fairlead.wake.{tenant}.*.*",
        )
        await link.api(f"CONSUMER.CREATE.WAKES.runner-{tenant}", consumer_config(spec))


async def test_a_deleted_consumer_is_made_again_with_its_deadline(own_server: Server) -> None:
    """A5: wakes that came while it was gone are served."""
    await provision(own_server.address, wake_deadline_s=7.0)
    first, second = session_of("acme"), session_of("beta")
    async with (
        connect(own_server.address, name="test") as eventlog,
        open_link(own_server.address, name="operator") as link,
    ):
        jobs = eventlog.wakes.take(Slots(4))
        await eventlog.wakes.wake(first)
        async with await next_job(jobs) as job:
            await job.ack()
        await link.api(f"CONSUMER.DELETE.{CONSUMER}")
        assert await eventlog.wakes.wake(second)

        with pytest.raises(ConsumerMissing):
            await next_job(jobs)
        async with await next_job(eventlog.wakes.take(Slots(4))) as job:
            assert subjects.address(job.subject) == second
        consumer = await link.api(f"CONSUMER.INFO.{CONSUMER}")

    assert consumer["config"]["ack_wait"] == 7_000_000_000


async def test_renewing_a_wake_makes_a_deleted_consumer_again(own_server: Server) -> None:
    """A5: the sweep renews, whether or not a runner lives."""
    await provision(own_server.address)
    at = session_of("acme")
    async with (
        connect(own_server.address, name="test") as eventlog,
        open_link(own_server.address, name="operator") as link,
    ):
        await eventlog.wakes.wake(at)
        await link.api(f"CONSUMER.DELETE.{CONSUMER}")

        await eventlog.wakes.renew(at)

        consumer = await link.api(f"CONSUMER.INFO.{CONSUMER}")
    assert consumer["num_pending"] == 1


async def test_provisioning_joins_the_lanes_of_older_releases(own_server: Server) -> None:
    """No wake is lost: neither one that waits, nor one that an older runner has."""
    await provision(own_server.address)
    tenants = ("default", "acme", "beta")
    held, waiting = (
        {tenant: session_of(tenant) for tenant in tenants},
        {tenant: session_of(tenant) for tenant in tenants},
    )
    lines: list[str] = []
    async with (
        connect(own_server.address, name="test") as eventlog,
        open_link(own_server.address, name="operator") as link,
    ):
        await make_old_lanes(link, *tenants)
        old_jobs: dict[str, Job] = {}
        for tenant in tenants:
            await eventlog.wakes.wake(held[tenant])
            old_jobs[tenant] = await next_job(
                eventlog.work.take("WAKES", f"runner-{tenant}", Slots(1))
            )
            await eventlog.wakes.wake(waiting[tenant])

        await provision(own_server.address, progress=lines.append)

        await old_jobs["default"].ack()
        expected = {*waiting.values(), held["acme"], held["beta"]}
        found: set[Address] = set()
        async with asyncio.timeout(20):
            async for job in eventlog.wakes.take(Slots(16)):
                async with job:
                    await job.ack()
                    found.add(subjects.address(job.subject))
                if found >= expected:
                    break
        names = await link.api("CONSUMER.NAMES.WAKES")

    assert found == expected
    assert names["consumers"] == ["runner-default"]
    assert "consumer WAKES/runner-acme: removed" in lines


async def test_a_refused_pull_is_repeated_after_a_pause(own_server: Server) -> None:
    """A20: status 409, here for a consumer on which as many pulls wait as may."""
    await provision(own_server.address)
    async with open_link(own_server.address, name="test") as link:
        spec = ConsumerSpec("PROMPTS", "narrow", ack_wait_s=2.0, max_ack_pending=10)
        await link.api("CONSUMER.DELETE.PROMPTS.ingest")
        body = consumer_config(spec)
        body["config"]["max_waiting"] = 1
        await link.api("CONSUMER.CREATE.PROMPTS.narrow", body)
        subject, asked = "$JS.API.CONSUMER.MSG.NEXT.PROMPTS.narrow", list[bytes]()

        async def count(msg: object) -> None:
            asked.append(getattr(msg, "data", b""))

        await link.send(subject, b'{"batch": 1, "expires": 30000000000}', reply="elsewhere")
        await link.client.subscribe(subject, cb=count)
        pull = Pull(link, "PROMPTS", "narrow", capacity=lambda: 4, expires_s=1.0)
        with suppress(TimeoutError):
            async with asyncio.timeout(4 * CONFLICT_PAUSE_S):
                await anext(pull.batches())

    assert 2 <= len(asked) <= 6


async def test_a_consumer_that_nobody_serves_for_a_moment_is_asked_again(
    own_server: Server,
) -> None:
    """A cluster serves a new consumer a moment later, and none while its leader is elected."""
    await provision(own_server.address)
    async with (
        connect(own_server.address, name="test") as eventlog,
        open_link(own_server.address, name="operator") as link,
    ):
        settings = await link.api(f"CONSUMER.INFO.{CONSUMER}")
        await link.api(f"CONSUMER.DELETE.{CONSUMER}")
        at = session_of("default")
        pull = Pull(link, *CONSUMER.split("."), capacity=lambda: 4, expires_s=1.0)
        batch = asyncio.ensure_future(anext(pull.batches()))
        await asyncio.sleep(3 * LEADERLESS_PAUSE_S)
        assert not batch.done()

        await link.api(
            f"CONSUMER.CREATE.{CONSUMER}", {"stream_name": "WAKES", "config": settings["config"]}
        )
        await eventlog.wakes.wake(at)

        async with asyncio.timeout(20):
            assert [subjects.address(message.subject) for message in await batch] == [at]


@pytest.mark.parametrize(("wait_s", "is_renewed"), [(60.0, False), (0.0, True)])
async def test_a_wake_keeps_its_place_in_a_crowd_for_a_while_whatever_the_own_clock_says(
    own_server: Server, monkeypatch: pytest.MonkeyPatch, *, wait_s: float, is_renewed: bool
) -> None:
    """A15, A18: the clock of this process is an hour behind, and a wake that was lost comes again."""
    wakes_module = "fairlead_eventlog.jetstream.streams.wakes"
    monkeypatch.setattr(f"{wakes_module}.CROWD", 1)
    monkeypatch.setattr(f"{wakes_module}.CROWD_WAIT_S", wait_s)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 3600)
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        at = session_of("default")
        await eventlog.wakes.wake(at)
        jobs = eventlog.wakes.take(Slots(1))
        await next_job(jobs)

        assert await eventlog.wakes.renew(at) is is_renewed
