"""Answers of the durable intake on a real server: a receipt stays."""

import pytest

from fairlead_eventlog.jetstream.connect import open_link
from fairlead_eventlog.jetstream.registers.receipts import JetStreamReceipts
from fairlead_eventlog.streams import RECEIPTS
from fairlead_schema import subjects
from fairlead_schema.subjects import Address
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration


async def test_a_refusal_never_replaces_a_receipt(server: Server, at: Address) -> None:
    """D9: the refusal of a later publication stands under its sequence."""
    async with open_link(server.address, name="test") as link:
        receipts = JetStreamReceipts(link)

        async def stored(subject: str) -> bytes | None:
            message = await link.last_message(RECEIPTS.name, subject)
            return None if message is None else message.payload

        await receipts.store_refusal(at, "msg_1", b"not yet", publication=1)
        assert await stored(subjects.receipt(at, "msg_1")) == b"not yet"
        await receipts.store(at, "msg_1", b"receipt")
        await receipts.store_refusal(at, "msg_1", b"conflict", publication=2)

        assert await stored(subjects.receipt(at, "msg_1")) == b"receipt"
        assert await stored(subjects.refusal(at, "msg_1", 1)) == b"not yet"
        assert await stored(subjects.refusal(at, "msg_1", 2)) == b"conflict"
