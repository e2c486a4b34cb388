"""Answers of the durable intake. A receipt stays, whatever is published under its id later."""

from collections.abc import Sequence
from typing import Final

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import (
    EXPECTED_LAST,
    WRONG_LAST_SEQUENCE,
    NatsLink,
    NoAnswer,
    ServerRefusal,
    StoredMessage,
    stream_error,
)
from fairlead_eventlog.jetstream.messages import store_message
from fairlead_eventlog.register_ports import StoredReceipt
from fairlead_eventlog.streams import RECEIPTS
from fairlead_schema import subjects
from fairlead_schema.ids import MessageId
from fairlead_schema.subjects import Address

BATCH: Final = 256


class JetStreamReceipts:
    """The last message per subject. The server stores a refusal only where nothing is."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def store(self, at: Address, message_id: MessageId, receipt: bytes) -> None:
        await store_message(self._link, subjects.receipt(at, message_id), receipt)

    async def store_refusal(
        self, at: Address, message_id: MessageId, refusal: bytes, *, publication: int
    ) -> None:
        await store_message(self._link, subjects.refusal(at, message_id, publication), refusal)
        try:
            await self._link.store(
                subjects.receipt(at, message_id), refusal, headers={EXPECTED_LAST: "0"}
            )
        except ServerRefusal as error:
            if error.code not in WRONG_LAST_SEQUENCE:
                raise stream_error(error, RECEIPTS.name) from error
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("the refusal was not acknowledged") from error

    async def last_position(self) -> int:
        try:
            answer = await self._link.api(f"STREAM.INFO.{RECEIPTS.name}")
        except ServerRefusal as refusal:
            raise stream_error(refusal, RECEIPTS.name) from refusal
        return int(answer["state"]["last_seq"])

    async def read_after(self, position: int) -> Sequence[StoredReceipt]:
        messages, _ = await self._link.read_subject(
            RECEIPTS.name, RECEIPTS.subjects[0], first=position + 1, batch=BATCH
        )
        return [_receipt(message) for message in messages]


def _receipt(message: StoredMessage) -> StoredReceipt:
    _root, _kind, tenant, session_id, message_id = message.subject.split(".")
    at = Address(tenant, session_id)
    return StoredReceipt(message.sequence, at, message_id, message.payload)
