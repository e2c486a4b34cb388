"""The tools that services registered, in a key-value bucket."""

from fairlead_eventlog.jetstream.link import (
    NatsLink,
)
from fairlead_eventlog.jetstream.messages import purge_subject, store_message
from fairlead_eventlog.streams import REGISTRATIONS
from fairlead_schema.ids import TenantId


class JetStreamToolRegistrations:
    """One message per registration."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        await store_message(self._link, _subject(tenant, key), value)

    async def remove(self, tenant: TenantId, key: str) -> None:
        await purge_subject(self._link, REGISTRATIONS.name, _subject(tenant, key))

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        messages = await self._link.last_by_pattern(REGISTRATIONS.name, _subject(tenant, ">"))
        prefix = _subject(tenant, "")
        return {message.subject.removeprefix(prefix): message.payload for message in messages}


def _subject(tenant: TenantId, key: str) -> str:
    return f"$KV.fairlead-registration.{tenant}.{key}"
