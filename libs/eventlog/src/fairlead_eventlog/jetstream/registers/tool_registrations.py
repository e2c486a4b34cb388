"""The tools that services registered, in a key-value bucket, and the news of each change."""

import asyncio
from contextlib import suppress
from typing import Final

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import NatsLink, StoredMessage
from fairlead_eventlog.jetstream.messages import purge_subject, store_message
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.register_ports import OnToolsChanged
from fairlead_eventlog.streams import REGISTRATIONS
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import TOOLS_CHANGED

# A change that was forgotten is shown a moment later, by a replica that has caught up.
ANNOUNCED_MAX: Final = 1_000
REMOVED: Final = 0
# How long a server may lag behind a change that was announced.
LAG_S: Final = (0.01, 0.05, 0.1, 0.2, 0.5)


class JetStreamToolRegistrations:
    """One message per registration. A core message announces each change."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._announced: dict[TenantId, dict[str, int]] = {}
        """The sequence of each changed key that no read has shown yet."""

    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        sequence = await store_message(self._link, _subject(tenant, key), value)
        await self._announce(tenant, key, sequence)

    async def remove(self, tenant: TenantId, key: str) -> None:
        await purge_subject(self._link, REGISTRATIONS.name, _subject(tenant, key))
        await self._announce(tenant, key, REMOVED)

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        stored = await self._read(tenant)
        for pause_s in LAG_S:
            if self._shows_changes(tenant, stored):
                break
            await asyncio.sleep(pause_s)
            stored = await self._read(tenant)
        else:
            # Two workers changed one key, and their news crossed: what is stored counts.
            self._announced.pop(tenant, None)
        return {key: message.payload for key, message in stored.items()}

    async def watch(self, on_change: OnToolsChanged) -> None:
        def receive(msg: InboundMessage) -> None:
            tenant, key, sequence = msg.data.decode().split(" ")
            self._expect(tenant, key, int(sequence))
            on_change(tenant)

        await self._link.listen(TOOLS_CHANGED, receive)
        # Without a connection nobody hears of changes.
        self._link.on_reconnect(lambda: on_change(None))

    def _expect(self, tenant: TenantId, key: str, sequence: int) -> None:
        """Remember a change until a read shows it. Some processes never read, so there is a limit."""
        if (
            len(self._announced) >= ANNOUNCED_MAX
            or len(self._announced.get(tenant, ())) >= ANNOUNCED_MAX
        ):
            self._announced.clear()
        self._announced.setdefault(tenant, {})[key] = sequence

    async def _announce(self, tenant: TenantId, key: str, sequence: int) -> None:
        """Tell everybody. Once the server has the message, it reaches each process before later ones."""
        with suppress(LogUnavailable):  # A cache that missed the news is fresh again soon.
            await self._link.send(TOOLS_CHANGED, f"{tenant} {key} {sequence}".encode())
            await self._link.flush()

    async def _read(self, tenant: TenantId) -> dict[str, StoredMessage]:
        messages = await self._link.last_by_pattern(REGISTRATIONS.name, _subject(tenant, ">"))
        prefix = _subject(tenant, "")
        return {message.subject.removeprefix(prefix): message for message in messages}

    def _shows_changes(self, tenant: TenantId, stored: dict[str, StoredMessage]) -> bool:
        """Whether a read shows every announced change. What it shows need not be looked for again."""
        announced = self._announced.get(tenant, {})
        for key, sequence in tuple(announced.items()):
            message = stored.get(key)
            known = REMOVED if message is None else message.sequence
            if known >= sequence and (sequence != REMOVED or known == REMOVED):
                del announced[key]
        return not announced


def _subject(tenant: TenantId, key: str) -> str:
    return f"$KV.fairlead-registration.{tenant}.{key}"
