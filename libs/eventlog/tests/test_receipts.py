"""Answers of the durable intake on a real server: a receipt stays."""

import pytest

from fairlead_eventlog.jetstream.link_lifetime import open_link
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


async def test_receipts_are_read_on_from_a_position(server: Server, at: Address) -> None:
    """The auditor reads each answer once; the refusal of a publication is under its message id too."""
    async with open_link(server.address, name="test") as link:
        receipts = JetStreamReceipts(link)
        before = await receipts.last_position()
        await receipts.store(at, "msg_a", b"a")
        await receipts.store_refusal(at, "msg_b", b"b", publication=1)

        found = await receipts.read_after(before)
        again = await receipts.read_after(found[0].position)

    assert [(each.at, each.message_id, each.answer) for each in found] == [
        (at, "msg_a", b"a"),
        (at, "msg_b", b"b"),
    ]
    assert again == found[1:]
