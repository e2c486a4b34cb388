"""Registered context sources in a key-value bucket."""

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import (
    EXPECTED_LAST,
    WRONG_LAST_SEQUENCE,
    NatsLink,
    NoAnswer,
    ServerRefusal,
    stream_error,
)
from fairlead_eventlog.jetstream.messages import purge_subject
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.register_ports import OnSourceChanged
from fairlead_eventlog.streams import SOURCES
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import SOURCES_CHANGED


class JetStreamSources:
    """One message per key. The first writer of a key keeps it."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def add(self, tenant: TenantId, key: str, body: bytes) -> bytes:
        subject = _subject(tenant, key)
        try:
            await self._link.store(subject, body, headers={EXPECTED_LAST: "0"})
        except ServerRefusal as refusal:
            if refusal.code not in WRONG_LAST_SEQUENCE:
                raise stream_error(refusal, SOURCES.name) from refusal
            message = await self._link.last_message(SOURCES.name, subject)
            return body if message is None else message.payload
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("the source was not registered") from error
        return body

    async def remove(self, tenant: TenantId, key: str) -> None:
        await purge_subject(self._link, SOURCES.name, _subject(tenant, key))

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        messages = await self._link.last_by_pattern(SOURCES.name, f"{_subject(tenant, '')}>")
        sources = {_key(message.subject): message.payload for message in messages}
        return dict(sorted(sources.items()))

    async def announce(self, tenant: TenantId, key: str) -> None:
        # Once the server has the message, it reaches each process before later ones.
        await self._link.send(SOURCES_CHANGED, f"{tenant} {key.encode().hex()}".encode())
        await self._link.flush()

    async def watch(self, on_change: OnSourceChanged) -> None:
        def receive(msg: InboundMessage) -> None:
            tenant, key = msg.data.decode().split(" ")
            on_change(tenant, bytes.fromhex(key).decode())

        await self._link.listen(SOURCES_CHANGED, receive)
        # Without a connection nobody hears of changes.
        self._link.on_reconnect(lambda: on_change(None, None))


def _subject(tenant: TenantId, key: str) -> str:
    """Keys may hold the special characters of subjects, so a subject holds them in hexadecimal."""
    return f"$KV.fairlead-source.{tenant}.{key.encode().hex()}"


def _key(subject: str) -> str:
    return bytes.fromhex(subject.rpartition(".")[2]).decode()
