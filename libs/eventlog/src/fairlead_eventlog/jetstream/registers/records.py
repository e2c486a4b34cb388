"""Records in a key-value bucket that several writers change by compare-and-set."""

from fairlead_eventlog.errors import LogUnavailable, NoResponders, RecordChanged
from fairlead_eventlog.jetstream.link import (
    EXPECTED_LAST,
    WRONG_LAST_SEQUENCE,
    NoAnswer,
    ServerRefusal,
    stream_error,
)
from fairlead_eventlog.jetstream.registers.registrations import JetStreamRegistrations
from fairlead_eventlog.register_ports import VersionedValue
from fairlead_schema.ids import TenantId


class JetStreamRecords(JetStreamRegistrations):
    """One message per record. Its sequence is its revision."""

    async def read(self, tenant: TenantId, key: str) -> VersionedValue | None:
        message = await self._link.last_message(self._stream, self._subject(tenant, key))
        return None if message is None else VersionedValue(message.payload, message.sequence)

    async def replace(self, tenant: TenantId, key: str, value: bytes, *, revision: int) -> int:
        headers = {EXPECTED_LAST: str(revision)}
        try:
            sequence = await self._link.store(self._subject(tenant, key), value, headers=headers)
        except ServerRefusal as refusal:
            if refusal.code in WRONG_LAST_SEQUENCE:
                raise RecordChanged(key, expected=revision) from refusal
            raise stream_error(refusal, self._stream) from refusal
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable(f"{self._stream} did not acknowledge {key}") from error
        await self._announce(tenant, key, sequence)
        return sequence
