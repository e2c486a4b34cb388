"""Managed outputs in a JetStream object store, written and read piece by piece.

The layout is the one that every client of object stores knows: an object's chunks stand on a subject
of their own, and its description on one that its name gives. The description is written last, so an
object is there whole or not at all. A name begins with its tenant, so no id reaches another's. The
subject of the chunks names session and output, so that all of a session's are found and removed.
"""

import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

import orjson

from fairlead_eventlog.errors import LogError, LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import Link, NoAnswer, ServerRefusal, stream_error
from fairlead_eventlog.jetstream.messages import purge_subject
from fairlead_eventlog.ports import StoredOutput
from fairlead_eventlog.streams import OUTPUT_BUCKET, OUTPUTS
from fairlead_schema.ids import OutputId, TenantId
from fairlead_schema.subjects import Address

CHUNK_BYTES: Final = 512 * 1024
# How many chunks are on their way to a reader at a time: what a read holds in memory.
BATCH: Final = 4
MIME: Final = "Content-Type"


class JetStreamOutputs:
    """Managed outputs as objects of one bucket."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def put(
        self, at: Address, output_id: OutputId, pieces: AsyncIterator[bytes], *, mime: str
    ) -> StoredOutput:
        nuid = f"{at.tenant}.{at.session_id}.{output_id}.{secrets.token_hex(11)}"
        try:
            size, chunks, digest = await self._chunks(_chunk(nuid), pieces)
            told = {
                "name": _name(at.tenant, output_id),
                "bucket": OUTPUT_BUCKET,
                "nuid": nuid,
                "size": size,
                "chunks": chunks,
                "digest": f"SHA-256={urlsafe_b64encode(digest).decode()}",
                "mtime": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
                "headers": {MIME: [mime]},
                "options": {"max_chunk_size": self._chunk_bytes},
            }
            headers = {"Nats-Rollup": "sub"}
            await self._stored(_described(at.tenant, output_id), orjson.dumps(told), headers)
        except BaseException:
            # Nobody can find these chunks: they need not wait for their time to be over.
            with suppress(LogError):
                await purge_subject(self._link, OUTPUTS.name, _chunk(nuid))
            raise
        return StoredOutput(size, mime)

    async def stat(self, tenant: TenantId, output_id: OutputId) -> StoredOutput | None:
        told = await self._told(tenant, output_id)
        return None if told is None else StoredOutput(told["size"], _mime(told))

    async def get(
        self, tenant: TenantId, output_id: OutputId, *, first: int = 0
    ) -> AsyncIterator[bytes]:
        told = await self._told(tenant, output_id)
        if told is None:
            return
        subject, sequence, passed = _chunk(told["nuid"]), 1, 0
        while passed < told["size"]:
            found, _ = await self._link.read_subject(
                OUTPUTS.name, subject, first=sequence, batch=BATCH
            )
            if not found:
                raise LogUnavailable(f"{output_id} ends after {passed} of {told['size']} bytes")
            for got in found:
                rest = got.payload[max(0, first - passed) :]
                passed += len(got.payload)
                if rest:
                    yield rest
            sequence = found[-1].sequence + 1

    async def remove_all(self, at: Address) -> None:
        chunks = _chunk(f"{at.tenant}.{at.session_id}.>")
        try:
            told = await self._link.api(f"STREAM.INFO.{OUTPUTS.name}", {"subjects_filter": chunks})
        except ServerRefusal as refusal:
            raise stream_error(refusal, OUTPUTS.name) from refusal
        for subject in told["state"].get("subjects", {}):
            _, _, output_id, _ = subject.removeprefix(_chunk("")).split(".")
            await purge_subject(self._link, OUTPUTS.name, _described(at.tenant, output_id))
        # The chunks go last: as long as they are there, this can be done again.
        await purge_subject(self._link, OUTPUTS.name, chunks)

    @property
    def _chunk_bytes(self) -> int:
        return min(CHUNK_BYTES, self._link.payload_bytes_max)

    async def _chunks(self, subject: str, pieces: AsyncIterator[bytes]) -> tuple[int, int, bytes]:
        """Store the pieces as chunks of one length; how many bytes and chunks, and their digest."""
        digest, pending, size, chunks = sha256(), bytearray(), 0, 0
        async for piece in pieces:
            digest.update(piece)
            size += len(piece)
            pending += piece
            while len(pending) >= self._chunk_bytes:
                await self._stored(subject, bytes(pending[: self._chunk_bytes]))
                del pending[: self._chunk_bytes]
                chunks += 1
        if pending or not chunks:
            # An empty output has a chunk too, or nothing would say whose it is.
            await self._stored(subject, bytes(pending))
            chunks += 1
        return size, chunks, digest.digest()

    async def _stored(
        self, subject: str, payload: bytes, headers: dict[str, str] | None = None
    ) -> None:
        """Store one message. One of which nobody knows whether it is there ends the whole put."""
        try:
            await self._link.store(subject, payload, headers=headers)
        except ServerRefusal as refusal:
            raise stream_error(refusal, OUTPUTS.name) from refusal
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("a managed output was not acknowledged") from error

    async def _told(self, tenant: TenantId, output_id: OutputId) -> dict[str, Any] | None:
        got = await self._link.last_message(OUTPUTS.name, _described(tenant, output_id))
        if got is None:
            return None
        told: dict[str, Any] = orjson.loads(got.payload)
        return None if told.get("deleted") else told


def _name(tenant: TenantId, output_id: OutputId) -> str:
    return f"{tenant}/{output_id}"


def _mime(told: dict[str, Any]) -> str:
    return str(next(iter(told.get("headers", {}).get(MIME, ())), "application/octet-stream"))


def _chunk(nuid: str) -> str:
    return f"$O.{OUTPUT_BUCKET}.C.{nuid}"


def _described(tenant: TenantId, output_id: OutputId) -> str:
    name = urlsafe_b64encode(_name(tenant, output_id).encode()).decode()
    return f"$O.{OUTPUT_BUCKET}.M.{name}"
