"""Outputs and attachments in parts: `transfer.output` stores those of an import, `transfer.read` reads."""

from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from hashlib import sha256
from typing import Final, cast

from fairlead_eventlog.register_ports import OutputPart, OutputParts, OutputStore
from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_schema.attachments.reference import digest_of, is_attachment, object_name
from fairlead_schema.commands.transfer import OutputRead, OutputStored, ReadOutputPart, StoreOutput
from fairlead_schema.errors import InvalidRequest
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import OutputId
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.lines import CHUNK_BYTES
from fairlead_service.rpc.server import TenantParam
from fairlead_session.media.kind import find_lie

PIECE_BYTES: Final = CHUNK_BYTES
"""In base64 it fits into a message."""


async def store_output(
    context: ContextDep, tenant: TenantParam, command: StoreOutput
) -> OutputStored:
    """Store one part. An output that exists stays as it is, whoever it belongs to."""
    return await store_part(context, Address(tenant, command.session_id), command)


async def store_part(
    context: CommandContext,
    at: Address,
    command: StoreOutput,
    *,
    principal: PrincipalName | None = None,
) -> OutputStored:
    """Store one part; the last one makes the whole readable. Raises InvalidRequest."""
    store, name = _find_store(context, command)
    if await store.stat(at.tenant, name) is not None:
        return OutputStored(id=command.id, complete=True)
    part = OutputPart(command.upload, command.part, command.first_bytes, command.data)
    await store.put_part(at, name, part, principal=principal)
    if command.digest is None:
        return OutputStored(id=command.id, complete=False)
    if command.mime is None or command.bytes is None:
        raise InvalidRequest("The last part names mime and bytes", kind="Body", field="mime")
    if is_attachment(command.id) and command.digest != digest_of(command.id):
        raise InvalidRequest(
            "The content has another hash than its id", kind="Body", field="digest"
        )
    parts = OutputParts(
        upload=command.upload,
        first_bytes=command.first_bytes,
        count=command.part + 1,
        size=command.bytes,
        digest=bytes.fromhex(command.digest),
        mime=command.mime,
    )
    fault = await _find_fault(store.read_parts(at, name, parts, principal=principal), command)
    if fault is not None:
        await store.drop_parts(at, name, parts, principal=principal)
        raise InvalidRequest(f"The file is refused: {fault}", kind="Body")
    await store.finish_parts(at, name, parts, principal=principal)
    return OutputStored(id=command.id, complete=True)


async def _find_fault(parts: AsyncIterator[bytes], command: StoreOutput) -> str | None:
    """Why the parts are not what the last one says; None if they are. Nobody can replace them later."""
    digest, size, content = sha256(), 0, bytearray()
    async for data in parts:
        digest.update(data)
        size += len(data)
        if is_attachment(command.id):
            content += data
    if size != command.bytes:
        return f"its parts have {size} bytes, and {command.bytes} were announced"
    if digest.hexdigest() != command.digest:
        return "its parts have another hash than the last one says"
    return find_lie(command.mime or "", bytes(content)) if is_attachment(command.id) else None


async def read_output(
    context: ContextDep, tenant: TenantParam, command: ReadOutputPart
) -> OutputRead:
    """Some bytes of an output from a place on. Raises nothing for one that is not stored any more."""
    store, name = _find_store(context, command)
    stored = await store.stat(tenant, name)
    if stored is None:
        return OutputRead(id=command.id)
    data = bytearray()
    pieces = store.get(tenant, name, first=command.first)
    async with aclosing(cast("AsyncGenerator[bytes, None]", pieces)) as content:
        async for piece in content:
            data += piece
            if len(data) >= PIECE_BYTES:
                break
    piece = b64encode(data[:PIECE_BYTES])
    return OutputRead(id=command.id, mime=stored.mime, bytes=stored.bytes, data=piece)


def _find_store(
    context: CommandContext, command: StoreOutput | ReadOutputPart
) -> tuple[OutputStore, OutputId]:
    if is_attachment(command.id):
        return context.eventlog.attachments, object_name(command.session_id, command.id)
    return context.eventlog.outputs, command.id
