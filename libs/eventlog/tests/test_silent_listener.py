"""A client of the feed that never acknowledges costs a bounded amount, and no other client notices."""

import asyncio

import pytest
from nats.aio.msg import Msg

from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.pull import next_message
from fairlead_eventlog.jetstream.streams import client_consumers
from fairlead_eventlog.ports import ClientConsumer, FeedItem
from fairlead_schema.subjects import Address, event
from fairlead_service import ids
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration

EVENTS_COUNT = 40
PENDING_MAX = 10


async def listen(link: NatsLink, consumer: ClientConsumer, *, acknowledge: bool) -> list[bytes]:
    """Ask for everything at once. The list grows with what the server delivers."""
    received: list[bytes] = []

    async def receive(msg: Msg) -> None:
        if msg.data:
            received.append(msg.data)
            if acknowledge:
                await link.send(msg.reply, b"+ACK")

    inbox = link.client.new_inbox()
    await link.client.subscribe(inbox, cb=receive)
    await link.client.flush()
    pull = b'{"batch": 1000, "expires": 60000000000}'
    await link.send(next_message(consumer.stream, consumer.name), pull, reply=inbox)
    return received


async def test_a_client_that_never_acknowledges_is_given_no_more(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_consumers, "PENDING_MAX", PENDING_MAX)
    at = Address(f"tenant{ids.session_id()[4:12].lower()}", ids.session_id())
    async with (
        connect(server.address, name="test") as log,
        open_link(server.address, name="test") as link,
    ):
        silent = await log.client_consumers.open_feed(at.tenant, "user:silent", after=None)
        other = await log.client_consumers.open_feed(at.tenant, "user:other", after=None)
        never, always = (
            await listen(link, silent, acknowledge=False),
            await listen(link, other, acknowledge=True),
        )
        items = [
            FeedItem(event(at, "session.archived"), ids.event_id(), b"%d" % number)
            for number in range(EVENTS_COUNT)
        ]
        async with asyncio.timeout(30):
            await log.feed.publish(items)
            while len(always) < EVENTS_COUNT:
                await asyncio.sleep(0.01)

        assert [int(item) for item in always] == list(range(EVENTS_COUNT))
        info = await link.api(f"CONSUMER.INFO.{silent.stream}.{silent.name}")
        assert info["num_ack_pending"] == len(never) == PENDING_MAX
