"""Snapshots of folded sessions in a key-value bucket."""

from typing import Final

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError

from fairlead_eventlog.jetstream.link import (
    NatsLink,
)
from fairlead_eventlog.jetstream.messages import purge_subject, store_message
from fairlead_eventlog.ports import Head
from fairlead_eventlog.register_ports import Snapshot
from fairlead_eventlog.streams import SNAPSHOTS
from fairlead_schema.subjects import Address

SNAPSHOT_BYTES_MAX: Final = 4 * 1024 * 1024
_HEAD: Final = TypeAdapter(Head, config=ConfigDict(strict=True))


class JetStreamSnapshots:
    """Folded sessions in a key-value bucket."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def load(self, at: Address) -> Snapshot | None:
        messages, _ = await self._link.read_subject(SNAPSHOTS.name, _subject(at), first=1, batch=1)
        if not messages:
            return None
        head, _, state = messages[0].payload.partition(b"\n")
        try:
            return Snapshot(_HEAD.validate_json(head), state)
        except ValidationError:
            return None  # Another version wrote it. The log still has every event.

    async def store(self, at: Address, snapshot: Snapshot) -> None:
        if len(snapshot.state) <= min(SNAPSHOT_BYTES_MAX, self._link.payload_bytes_max):
            payload = orjson.dumps(list(snapshot.head)) + b"\n" + snapshot.state
            await store_message(self._link, _subject(at), payload)

    async def remove(self, at: Address) -> None:
        await purge_subject(self._link, SNAPSHOTS.name, _subject(at))

    async def remove_all(self) -> None:
        await purge_subject(self._link, SNAPSHOTS.name, "$KV.fairlead-snapshot.>")


def _subject(at: Address) -> str:
    return f"$KV.fairlead-snapshot.{at.tenant}.{at.session_id}"
