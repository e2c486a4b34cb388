"""What services registered, in a key-value bucket, and the news of each change."""

import asyncio
from contextlib import suppress
from typing import Final

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import NatsLink, StoredMessage
from fairlead_eventlog.jetstream.messages import purge_subject, store_message
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.register_ports import OnRegistrationsChanged
from fairlead_eventlog.streams import REGISTRATIONS, TRANSFORMS, StreamSpec
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import TOOLS_CHANGED, TRANSFORMS_CHANGED

# A change that was forgotten is shown a moment later, by a replica that has caught up.
ANNOUNCED_MAX: Final = 1_000
REMOVED: Final = 0
# How long a server may lag behind a change that was announced.
LAG_S: Final = (0.01, 0.05, 0.1, 0.2, 0.5)


class JetStreamRegistrations:
    """One message per registration. A core message announces each change, if anybody watches."""

    def __init__(self, link: NatsLink, bucket: StreamSpec, changed: str | None) -> None:
        self._link = link
        self._stream = bucket.name
        self._prefix = bucket.subjects[0].removesuffix(">")
        self._changed = changed
        self._announced: dict[TenantId, dict[str, int]] = {}
        """The sequence of each changed key that no read has shown yet."""

    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        sequence = await store_message(self._link, self._subject(tenant, key), value)
        await self._announce(tenant, key, sequence)

    async def remove(self, tenant: TenantId, key: str) -> None:
        await purge_subject(self._link, self._stream, self._subject(tenant, key))
        await self._announce(tenant, key, REMOVED)

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        return (await self._read_changed(tenant)).get(tenant, {})

    async def get_all_tenants(self) -> dict[TenantId, dict[str, bytes]]:
        return await self._read_changed(None)

    async def watch(self, on_change: OnRegistrationsChanged) -> None:
        def receive(msg: InboundMessage) -> None:
            tenant, key, sequence = msg.data.decode().split(" ")
            self._expect(tenant, key, int(sequence))
            on_change(tenant)

        assert self._changed is not None, f"nobody announces changes of {self._stream}"
        await self._link.listen(self._changed, receive)
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
        """Tell everybody. Once the server has the message, it reaches each process before later ones.

        This process expects its own change at once, because nobody else may watch.
        """
        self._expect(tenant, key, sequence)
        if self._changed is None:
            return
        with suppress(LogUnavailable):  # A cache that missed the news is fresh again soon.
            await self._link.send(self._changed, f"{tenant} {key} {sequence}".encode())
            await self._link.flush()

    async def _read_changed(self, tenant: TenantId | None) -> dict[TenantId, dict[str, bytes]]:
        """The registrations of one tenant or of all, with every change that was announced."""
        stored = await self._read(tenant)
        for pause_s in LAG_S:
            expected = tuple(self._announced) if tenant is None else (tenant,)
            if all(self._shows_changes(changed, stored) for changed in expected):
                break
            await asyncio.sleep(pause_s)
            stored = await self._read(tenant)
        else:
            # Two workers changed one key, and their news crossed: what is stored counts.
            for changed in tuple(self._announced) if tenant is None else (tenant,):
                self._announced.pop(changed, None)
        found: dict[TenantId, dict[str, bytes]] = {}
        for (owner, key), message in stored.items():
            found.setdefault(owner, {})[key] = message.payload
        return found

    async def _read(self, tenant: TenantId | None) -> dict[tuple[TenantId, str], StoredMessage]:
        pattern = f"{self._prefix}>" if tenant is None else self._subject(tenant, ">")
        messages = await self._link.last_by_pattern(self._stream, pattern)
        stored = {}
        for message in messages:
            owner, _, key = message.subject.removeprefix(self._prefix).partition(".")
            stored[owner, key] = message
        return stored

    def _shows_changes(
        self, tenant: TenantId, stored: dict[tuple[TenantId, str], StoredMessage]
    ) -> bool:
        """Whether a read shows every announced change. What it shows need not be looked for again."""
        announced = self._announced.get(tenant, {})
        for key, sequence in tuple(announced.items()):
            message = stored.get((tenant, key))
            known = REMOVED if message is None else message.sequence
            if known >= sequence and (sequence != REMOVED or known == REMOVED):
                del announced[key]
        if not announced:
            self._announced.pop(tenant, None)
        return not announced

    def _subject(self, tenant: TenantId, key: str) -> str:
        return f"{self._prefix}{tenant}.{key}"


def tool_registrations(link: NatsLink) -> JetStreamRegistrations:
    """The tools that services registered."""
    return JetStreamRegistrations(link, REGISTRATIONS, TOOLS_CHANGED)


def transform_registrations(link: NatsLink) -> JetStreamRegistrations:
    """The transforms that services registered."""
    return JetStreamRegistrations(link, TRANSFORMS, TRANSFORMS_CHANGED)
