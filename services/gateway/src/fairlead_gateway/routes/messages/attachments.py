"""Uploads: a file goes to the store of its session, and a later prompt names it; and the way back."""

import asyncio
import secrets
from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated, BinaryIO, Final

from pydantic import Field, StringConstraints
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, attachment_id_of
from fairlead_gateway.log.commands import send_command
from fairlead_gateway.routes.server.tool_output import stream_object
from fairlead_gateway.transfer.spool import open_spool, spool_body
from fairlead_schema.attachments.reference import attachment_uri, id_of_digest, object_name
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.transfer import OutputStored, UploadPart
from fairlead_schema.errors import (
    AttachmentNotFound,
    InvalidRequest,
    LimitReached,
    PayloadTooLarge,
    ServiceUnavailable,
    SessionNotFound,
)
from fairlead_schema.model import InputModel, Model
from fairlead_schema.subjects import Address
from fairlead_session.input.attachment import detect_type
from fairlead_session.media.kind import find_lie

PART_BYTES: Final = 384 * 1024
CHECKED_AT_ONCE: Final = 4
"""A file is in memory while it is checked, so only some of them are at a time."""
_checks = asyncio.Semaphore(CHECKED_AT_ONCE)


class UploadQuery(InputModel):
    type: Annotated[str, StringConstraints(pattern=r"^[\w.+-]{1,100}/[\w.+-]{1,100}$")] | None = (
        None
    )
    """The media type. Without one, the content and the name decide."""
    name: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None


class UploadedFile(Model):
    """A stored file: a prompt attaches it by its URI."""

    uri: str
    mime: str
    bytes: Annotated[int, Field(ge=0)]
    name: str | None = None


class UploadAnswer(Model):
    data: UploadedFile


async def _upload(request: ApiRequest[UploadQuery, EmptyInput]) -> Response:
    runtime, caller = request.runtime, request.principal.name
    settings = runtime.settings
    runtime.limits.check_bytes(caller)
    with runtime.limits.open_stream(caller), open_spool() as body:
        size = await spool_body(
            request.http,
            body,
            bytes_max=settings.attachment_bytes_max,
            stall_s=settings.body_timeout_s,
            setting="attachment_bytes_max",
        )
        runtime.limits.take_bytes(caller, size)
        async with _checks:
            mime, digest = await asyncio.to_thread(_check, body, request.query)
        for part in _parts(request.at, body, size, mime, digest):
            stored = await send_command(
                request, "session.upload", part, CommandAnswer[OutputStored]
            )
            if stored.complete:
                break
    uri = attachment_uri(id_of_digest(digest))
    file = UploadedFile(uri=uri, mime=mime, bytes=size, name=request.query.name)
    return answer(UploadAnswer(data=file))


def _check(body: BinaryIO, query: UploadQuery) -> tuple[str, str]:
    """The media type and the hash of a file. Raises InvalidRequest if it is not what it says."""
    content = body.read()
    mime = query.type.lower() if query.type else detect_type(content, query.name)
    lie = find_lie(mime, content)
    if lie is not None:
        raise InvalidRequest(f"The file is refused: {lie}", kind="Body", field="type")
    return mime, sha256(content).hexdigest()


def _parts(at: Address, body: BinaryIO, size: int, mime: str, digest: str) -> Iterator[UploadPart]:
    """The commands that store a file. The last one makes it readable."""
    upload, sent = secrets.token_hex(11), 0
    body.seek(0)
    for number in range(max(1, -(-size // PART_BYTES))):
        data = body.read(PART_BYTES)
        sent += len(data)
        part = UploadPart.model_construct(
            session_id=at.session_id,
            id=id_of_digest(digest),
            upload=upload,
            part=number,
            first_bytes=min(size, PART_BYTES),
            data=data,
            total=size,
        )
        last = {"mime": mime, "bytes": size, "digest": digest}
        yield part.model_copy(update=last) if sent == size else part


async def _read(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    attachment_id, store = attachment_id_of(request.http), request.runtime.nats().attachments
    name = object_name(request.at.session_id, attachment_id)
    found = await stream_object(request, store, name, shown_name=attachment_id)
    if found is None:
        raise AttachmentNotFound(attachment_id)
    return found


UPLOAD = Operation(
    id="session.upload",
    method="POST",
    path="/api/session/{sessionID}/upload",
    scope="session:write",
    summary="Store a file for a later prompt, which attaches it by the URI of the answer.",
    respond=_upload,
    query=UploadQuery,
    answer=UploadAnswer,
    takes="application/octet-stream",
    errors=(SessionNotFound, InvalidRequest, PayloadTooLarge, LimitReached, ServiceUnavailable),
)

READ = Operation(
    id="session.attachment",
    method="GET",
    path="/api/session/{sessionID}/attachment/{attachmentID}",
    scope="session:read",
    summary="The content of a stored attachment, or a range of its bytes.",
    respond=_read,
    answer=None,
    errors=(SessionNotFound, AttachmentNotFound, ServiceUnavailable),
    media="application/octet-stream",
)
