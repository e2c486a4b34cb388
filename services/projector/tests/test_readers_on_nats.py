"""On a real server: one consumer a shard for tables and feed, and consumers of an earlier release go."""

import asyncio

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.ports import START
from fairlead_eventlog.provision import provision
from fairlead_eventlog.streams import EVENTS, log_stream
from fairlead_projector import database
from fairlead_projector.migrations import migrate
from fairlead_schema.subjects import SHARDS, shard
from fairlead_testing.nats import Server
from services.projector.tests import test_restore_on_nats
from services.projector.tests.test_restore_on_nats import (
    AT,
    CREATED,
    agent_switch,
    append,
    run_projector,
    wait_for_agent,
    wait_for_feed,
)

pytestmark = pytest.mark.integration

server = test_restore_on_nats.server


async def leave_consumers(link: NatsLink) -> None:
    """What a projector of an earlier release leaves behind in each shard."""
    for number in range(SHARDS):
        for name in ("projector", "feed"):
            config = {"durable_name": name, "name": name, "ack_policy": "none"}
            body = {"stream_name": log_stream(number), "config": config}
            await link.api(f"CONSUMER.CREATE.{log_stream(number)}.{name}", body)


async def wait_for_consumers(link: NatsLink, count: int) -> None:
    """Wait until each shard has so many consumers."""
    async with asyncio.timeout(30):
        for number in range(SHARDS):
            while True:
                answer = await link.api(f"CONSUMER.NAMES.{log_stream(number)}")
                if len(answer["consumers"] or ()) == count:
                    break
                await asyncio.sleep(0.05)


async def count_delivered(link: NatsLink, stream: str) -> int:
    answer = await link.api(f"CONSUMER.LIST.{stream}")
    return sum(int(info["delivered"]["consumer_seq"]) for info in answer["consumers"])


async def test_tables_and_feed_of_one_process_read_each_commit_once(
    server: Server,
    dsn: str,
) -> None:
    """Consumers that nobody reads any more are removed, also those of an earlier release."""
    await provision(server.address)
    async with await database.connect(dsn) as connection:
        await migrate(connection)
    async with (
        connect(server.address, name="test") as eventlog,
        open_link(server.address, name="test") as link,
    ):
        await leave_consumers(link)
        head = await append(eventlog, CREATED, START)
        async with run_projector(server, dsn, eventlog):
            await wait_for_consumers(link, 1)
            stream = log_stream(shard(AT.session_id))
            before = await count_delivered(link, stream)
            for number in range(5):
                head = await append(eventlog, agent_switch(f"agent{number}"), head)
            await wait_for_agent(dsn, "agent4")
            await wait_for_feed(eventlog, head.position)

            assert await count_delivered(link, stream) - before == 5
            assert await _published(eventlog, link) == 6


async def _published(eventlog: EventLog, link: NatsLink) -> int:
    assert eventlog.complaint() is None
    return int((await link.api(f"STREAM.INFO.{EVENTS.name}"))["state"]["messages"])
