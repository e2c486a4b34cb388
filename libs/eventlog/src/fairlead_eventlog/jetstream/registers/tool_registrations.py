"""The tools that services registered, in a key-value bucket."""

from fairlead_eventlog.jetstream.link import (
    Link,
)
from fairlead_eventlog.jetstream.messages import forget, stored
from fairlead_eventlog.streams import REGISTRATIONS
from fairlead_schema.ids import TenantId


class JetStreamRegistrations:
    """Registrations in a key-value bucket, one key each."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        await stored(self._link, _registration(tenant, key), value)

    async def drop(self, tenant: TenantId, key: str) -> None:
        await forget(self._link, REGISTRATIONS.name, _registration(tenant, key))

    async def of(self, tenant: TenantId) -> dict[str, bytes]:
        found = await self._link.family(REGISTRATIONS.name, _registration(tenant, ">"))
        before = len(_registration(tenant, ""))
        return {got.subject[before:]: got.payload for got in found}


def _registration(tenant: TenantId, key: str) -> str:
    return f"$KV.fairlead-registration.{tenant}.{key}"
