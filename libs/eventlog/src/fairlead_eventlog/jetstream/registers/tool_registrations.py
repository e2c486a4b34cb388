"""The tools that services registered, in a key-value bucket."""

from fairlead_eventlog.jetstream.link import (
    Link,
)
from fairlead_eventlog.jetstream.messages import purge_subject, store_message
from fairlead_eventlog.streams import REGISTRATIONS
from fairlead_schema.ids import TenantId


class JetStreamToolRegistrations:
    """Registrations in a key-value bucket, one key each."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        await store_message(self._link, _registration(tenant, key), value)

    async def remove(self, tenant: TenantId, key: str) -> None:
        await purge_subject(self._link, REGISTRATIONS.name, _registration(tenant, key))

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        found = await self._link.last_by_pattern(REGISTRATIONS.name, _registration(tenant, ">"))
        before = len(_registration(tenant, ""))
        return {got.subject[before:]: got.payload for got in found}


def _registration(tenant: TenantId, key: str) -> str:
    return f"$KV.fairlead-registration.{tenant}.{key}"
