"""Managed outputs in a JetStream object store, written and read piece by piece.

The layout is that of NATS object stores, so that any client can read it. An object has chunks on one
subject and a description on another, which its name determines. The description is written last, so an
object is complete or absent. Names begin with the tenant, so no id reaches an object of another tenant.
The subject of the chunks names session and output, so that the outputs of a session can be removed. It
also has the length of the first chunk and a mark of the principal, so that the server's list of subjects
gives the bytes of a tenant and of each principal.
"""

import secrets
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

import orjson

from fairlead_eventlog.errors import LogError, LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import NatsLink, NoAnswer, ServerRefusal, stream_error
from fairlead_eventlog.jetstream.messages import purge_subject
from fairlead_eventlog.jetstream.streams.output_chunks import Chunks, is_idle, read_chunks
from fairlead_eventlog.quotas.stored_bytes import StoredBytes, principal_mark
from fairlead_eventlog.register_ports import OutputPart, OutputParts, StoredOutput
from fairlead_eventlog.streams import OUTPUT_BUCKET
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import OutputId, TenantId
from fairlead_schema.subjects import Address

CHUNK_BYTES: Final = 512 * 1024
# How many chunks a reader holds in memory at a time.
BATCH: Final = 4
MIME: Final = "Content-Type"


class JetStreamOutputs:
    """Managed outputs, or attachments, as objects of one bucket."""

    def __init__(self, link: NatsLink, bucket: str = OUTPUT_BUCKET) -> None:
        self._link = link
        self._bucket = bucket
        self._stream = f"OBJ_{bucket}"

    async def put(
        self,
        at: Address,
        output_id: OutputId,
        pieces: AsyncIterator[bytes],
        *,
        mime: str,
        principal: PrincipalName | None = None,
    ) -> StoredOutput:
        chunks = _split_chunks(pieces, self._chunk_bytes)
        # An empty output has a chunk too: its subject names the session.
        first = await anext(chunks, b"")
        nuid = f"{at.tenant}.{at.session_id}.{output_id}.{_label(len(first), principal)}"
        try:
            size, count, digest = await self._store_chunks(self._chunk_subject(nuid), first, chunks)
            stored = OutputParts("", len(first), count, size, digest, mime)
            await self._store_description(at.tenant, output_id, nuid, stored)
        except BaseException:
            # Nobody can find these chunks, so they are removed before they expire.
            with suppress(LogError):
                await purge_subject(self._link, self._stream, self._chunk_subject(nuid))
            raise
        return StoredOutput(size, mime)

    async def put_part(
        self,
        at: Address,
        output_id: OutputId,
        part: OutputPart,
        *,
        principal: PrincipalName | None = None,
    ) -> None:
        nuid = _parts_nuid(at, output_id, part.upload, part.first_bytes, principal)
        headers = {"Nats-Msg-Id": f"{nuid}-{part.number}"}
        await self._store_message(self._chunk_subject(nuid), part.data, headers)

    async def finish_parts(
        self,
        at: Address,
        output_id: OutputId,
        parts: OutputParts,
        *,
        principal: PrincipalName | None = None,
    ) -> None:
        nuid = _parts_nuid(at, output_id, parts.upload, parts.first_bytes, principal)
        await self._store_description(at.tenant, output_id, nuid, parts)

    async def read_parts(
        self,
        at: Address,
        output_id: OutputId,
        parts: OutputParts,
        *,
        principal: PrincipalName | None = None,
    ) -> AsyncIterator[bytes]:
        nuid = _parts_nuid(at, output_id, parts.upload, parts.first_bytes, principal)
        subject = self._chunk_subject(nuid)
        async for payload in read_chunks(self._link, self._stream, subject, count=parts.count):
            yield payload

    async def drop_parts(
        self,
        at: Address,
        output_id: OutputId,
        parts: OutputParts,
        *,
        principal: PrincipalName | None = None,
    ) -> None:
        nuid = _parts_nuid(at, output_id, parts.upload, parts.first_bytes, principal)
        await purge_subject(self._link, self._stream, self._chunk_subject(nuid))

    async def remove_unfinished(self, *, idle_s: float) -> int:
        prefix = self._chunk_subject("")
        counts = await self._chunk_counts(f"{prefix}>")
        described = await self._chunk_counts(f"$O.{self._bucket}.M.>")
        tries = [Chunks(subject, *_parse_nuid(subject.removeprefix(prefix))) for subject in counts]
        outputs = Counter((each.tenant, each.output_id) for each in tries)
        removed = 0
        for each in tries:
            is_described = self._description_subject(each.tenant, each.output_id) in described
            if is_described and outputs[each.tenant, each.output_id] == 1:
                continue
            if await is_idle(self._link, self._stream, each.subject, idle_s):
                removed += await self._remove_unless_used(each)
        return removed

    async def _remove_unless_used(self, chunks: Chunks) -> bool:
        description = await self._describe(chunks.tenant, chunks.output_id)
        if description is not None and self._chunk_subject(description["nuid"]) == chunks.subject:
            return False
        await purge_subject(self._link, self._stream, chunks.subject)
        return True

    async def stat(self, tenant: TenantId, output_id: OutputId) -> StoredOutput | None:
        description = await self._describe(tenant, output_id)
        if description is None:
            return None
        return StoredOutput(description["size"], _mime(description))

    async def get(
        self, tenant: TenantId, output_id: OutputId, *, first: int = 0
    ) -> AsyncIterator[bytes]:
        description = await self._describe(tenant, output_id)
        if description is None:
            return
        subject, sequence, passed = self._chunk_subject(description["nuid"]), 1, 0
        while passed < description["size"]:
            chunks, _ = await self._link.read_subject(
                self._stream, subject, first=sequence, batch=BATCH
            )
            if not chunks:
                size = description["size"]
                raise LogUnavailable(f"{output_id} ends after {passed} of {size} bytes")
            for chunk in chunks:
                rest = chunk.payload[max(0, first - passed) :]
                passed += len(chunk.payload)
                if rest:
                    yield rest
            sequence = chunks[-1].sequence + 1

    async def stored_bytes(self, tenant: TenantId) -> StoredBytes:
        marked: Counter[str] = Counter()
        for subject, count in (
            await self._chunk_counts(self._chunk_subject(f"{tenant}.>"))
        ).items():
            marked[_mark(subject)] += self._output_bytes(subject, count)
        return StoredBytes(marked.total(), marked)

    async def remove_all(self, at: Address) -> None:
        chunks = self._chunk_subject(f"{at.tenant}.{at.session_id}.>")
        for subject in await self._chunk_counts(chunks):
            _, output_id = _parse_nuid(subject.removeprefix(self._chunk_subject("")))
            await purge_subject(
                self._link, self._stream, self._description_subject(at.tenant, output_id)
            )
        # The chunks go last: a second call needs them to find the rest.
        await purge_subject(self._link, self._stream, chunks)

    async def _chunk_counts(self, subject: str) -> dict[str, int]:
        """How many chunks there are on each subject that matches, from the server's list."""
        counts: dict[str, int] = {}
        while True:
            wanted = {"subjects_filter": subject, "offset": len(counts)}
            try:
                info = await self._link.api(f"STREAM.INFO.{self._stream}", wanted)
            except ServerRefusal as refusal:
                raise stream_error(refusal, self._stream) from refusal
            page: dict[str, int] = info["state"].get("subjects") or {}
            counts |= page
            if not page or len(counts) >= info.get("total", 0):
                return counts

    def _output_bytes(self, subject: str, chunks: int) -> int:
        """The bytes of an output. All of its chunks but the last are as long as the first."""
        length, dash, _ = subject.rpartition(".")[2].partition("-")
        first = int(length) if dash and length.isdigit() else self._chunk_bytes
        return first * chunks

    @property
    def _chunk_bytes(self) -> int:
        return min(CHUNK_BYTES, self._link.payload_bytes_max)

    async def _store_chunks(
        self, subject: str, first: bytes, others: AsyncIterator[bytes]
    ) -> tuple[int, int, bytes]:
        """Store the chunks of an output; the answer is size, number of chunks and digest."""
        digest, size, count = sha256(first), len(first), 1
        await self._store_message(subject, first)
        async for chunk in others:
            digest.update(chunk)
            size, count = size + len(chunk), count + 1
            await self._store_message(subject, chunk)
        return size, count, digest.digest()

    async def _store_description(
        self, tenant: TenantId, output_id: OutputId, nuid: str, parts: OutputParts
    ) -> None:
        """Make the chunks of an output readable."""
        description = {
            "name": _name(tenant, output_id),
            "bucket": self._bucket,
            "nuid": nuid,
            "size": parts.size,
            "chunks": parts.count,
            "digest": f"SHA-256={urlsafe_b64encode(parts.digest).decode()}",
            "mtime": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "headers": {MIME: [parts.mime]},
            "options": {"max_chunk_size": self._chunk_bytes},
        }
        headers = {"Nats-Rollup": "sub"}
        subject = self._description_subject(tenant, output_id)
        await self._store_message(subject, orjson.dumps(description), headers)

    async def _store_message(
        self, subject: str, payload: bytes, headers: dict[str, str] | None = None
    ) -> None:
        """Store one message. A message with an unknown outcome ends the whole put."""
        try:
            await self._link.store(subject, payload, headers=headers)
        except ServerRefusal as refusal:
            raise stream_error(refusal, self._stream) from refusal
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("a managed output was not acknowledged") from error

    async def _describe(self, tenant: TenantId, output_id: OutputId) -> dict[str, Any] | None:
        subject = self._description_subject(tenant, output_id)
        message = await self._link.last_message(self._stream, subject)
        if message is None:
            return None
        description: dict[str, Any] = orjson.loads(message.payload)
        return None if description.get("deleted") else description

    def _chunk_subject(self, nuid: str) -> str:
        return f"$O.{self._bucket}.C.{nuid}"

    def _description_subject(self, tenant: TenantId, output_id: OutputId) -> str:
        name = urlsafe_b64encode(_name(tenant, output_id).encode()).decode()
        return f"$O.{self._bucket}.M.{name}"


async def _split_chunks(pieces: AsyncIterator[bytes], length: int) -> AsyncIterator[bytes]:
    """The pieces as chunks of one length; the last one may be shorter."""
    pending = bytearray()
    async for piece in pieces:
        pending += piece
        while len(pending) >= length:
            yield bytes(pending[:length])
            del pending[:length]
    if pending:
        yield bytes(pending)


def _parse_nuid(nuid: str) -> tuple[TenantId, OutputId]:
    """The tenant and the output of chunks."""
    tenant, _, output_id, _ = nuid.split(".")
    return tenant, output_id


def _parts_nuid(
    at: Address,
    output_id: OutputId,
    upload: str,
    first_bytes: int,
    principal: PrincipalName | None,
) -> str:
    label = _label(first_bytes, principal, upload)
    return f"{at.tenant}.{at.session_id}.{output_id}.{label}"


def _label(first_bytes: int, principal: PrincipalName | None, token: str | None = None) -> str:
    """The last part of a subject of chunks: the length of the first one, and whose output it is."""
    label = f"{first_bytes}-{token or secrets.token_hex(11)}"
    return label if principal is None else f"{label}-{principal_mark(principal)}"


def _mark(subject: str) -> str:
    """The mark of the principal for which an output counts; empty if it has none."""
    _length, _random, mark, *_ = (*subject.rpartition(".")[2].split("-"), "", "", "")
    return mark


def _name(tenant: TenantId, output_id: OutputId) -> str:
    return f"{tenant}/{output_id}"


def _mime(description: dict[str, Any]) -> str:
    return str(next(iter(description.get("headers", {}).get(MIME, ())), "application/octet-stream"))
