"""A process that reads too slowly: an operator sees which subject lost messages."""

import asyncio
import logging

import pytest
from nats.aio.msg import Msg

from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration


async def test_dropped_messages_are_a_warning_with_their_subject(
    own_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """A20: one warning for many losses, and it says what happens next."""
    held = asyncio.Event()

    async def read_slowly(_msg: Msg) -> None:
        await held.wait()

    async with open_link(own_server.address, name="test") as link:
        await link.client.subscribe("slow", cb=read_slowly, pending_msgs_limit=2)
        with caplog.at_level(logging.WARNING):
            for _ in range(50):
                await link.send("slow", b"x")
            async with asyncio.timeout(20):
                while not caplog.records:
                    await link.client.flush()
                    await asyncio.sleep(0.01)
        held.set()

    (record,) = [record for record in caplog.records if "too slowly" in record.message]
    assert record.__dict__["subject"] == "slow"
    assert "read again" in record.message
