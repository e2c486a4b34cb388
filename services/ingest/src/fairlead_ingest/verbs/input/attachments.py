"""The attachments of a prompt at admission: data is checked, and stored if it is large.

The store is written before the log. If the admission then fails, the content stays unnamed until the
session is purged, and the same prompt finds it again.
"""

from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Final

from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.existing_session import check_exists
from fairlead_ingest.quotas import quota_error
from fairlead_ingest.verbs.input.options import check_options
from fairlead_ingest.verbs.profile.restrictions import check_session_allowed
from fairlead_schema.attachments.reference import (
    attachment_id,
    attachment_uri,
    digest_of,
    id_of_content,
    object_name,
)
from fairlead_schema.errors import InvalidRequest, PayloadTooLarge
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import AttachmentId
from fairlead_schema.prompt import AttachedContent, Prompt, PromptFile, PromptInput
from fairlead_schema.record import LEVEL_OF_ATTACHMENTS
from fairlead_schema.subjects import Address
from fairlead_session.input.attachment import check_attachments, resolve_attachments
from fairlead_session.media.data_uri import parse_data_uri
from fairlead_session.media.image_size import image_size
from fairlead_session.media.kind import find_lie, media_kind

# JSON has at most six bytes for a character, and a prompt has less than this around its text.
CHARACTER_BYTES_MAX: Final = 6
ENVELOPE_BYTES_MAX: Final = 1_024
IMAGE_SIDE_MAX: Final = 2_000
"""An image with a longer side is made smaller, so it is stored like a large one."""


async def resolve_prompt(context: CommandContext, at: Address, prompt: PromptInput) -> Prompt:
    """A prompt in the form that the log stores.

    Raises InvalidRequest, PayloadTooLarge, SessionNotFound, Forbidden or LimitReached.
    """
    resolved = check_prompt(context, prompt)
    if not resolved.files:
        return resolved
    storing = _Storing(context, at)
    files = [await storing.resolve(index, file) for index, file in enumerate(resolved.files)]
    return resolved.model_copy(update={"files": tuple(files)})


def check_prompt(context: CommandContext, prompt: PromptInput) -> Prompt:
    """A prompt as the log has it before its files are stored. Raises as `resolve_prompt` does."""
    check_options(context, prompt)
    if prompt.synthetic and (prompt.files or prompt.agents):
        raise InvalidRequest("Synthetic input is text alone", kind="Body", field="prompt.synthetic")
    resolved = resolve_attachments(prompt)
    check_content(context, resolved)
    return resolved


def check_content(context: CommandContext, resolved: Prompt) -> None:
    """Refuse a prompt without content, or with more or other content than a prompt may have.

    Raises InvalidRequest or PayloadTooLarge.
    """
    if not resolved.text.strip() and not resolved.files:
        raise InvalidRequest("A prompt needs text or a file", kind="Body", field="prompt.text")
    limit = context.settings.prompt_bytes_max
    if not is_surely_smaller(resolved, limit):
        size = len(resolved.model_dump_json().encode())
        if size > limit:
            raise PayloadTooLarge(f"A prompt of {size} bytes exceeds {limit}")
    refused = check_attachments(resolved)
    if refused is not None:
        raise _refuse(refused.index, refused.reason)


def is_surely_smaller(prompt: Prompt, limit: int) -> bool:
    """Whether a prompt is text alone, and too short to be larger than a limit however it is encoded."""
    has_more = prompt.files or prompt.agents or prompt.source or prompt.has_options
    return not has_more and len(prompt.text) * CHARACTER_BYTES_MAX + ENVELOPE_BYTES_MAX < limit


async def check_room(context: CommandContext, at: Address, size: int) -> PrincipalName | None:
    """Whom content of this size counts for, if the session may have it and there is room.

    Raises SessionNotFound, SessionIsStored, Forbidden, LimitReached, InvalidRequest before the level is finalised.
    """
    level = context.eventlog.status.current.level
    if level < LEVEL_OF_ATTACHMENTS:
        raise InvalidRequest(
            f"Stored attachments need level {LEVEL_OF_ATTACHMENTS} of the log's format, and {level} is"
            " finalised: run `fairlead provision --finalise` when no older release will run again",
            kind="Level",
        )
    session = check_exists(await context.peek(at))
    assert session.profile is not None, "an existing session has a profile"
    check_session_allowed(context, session)
    exceeded = await context.quotas.find_exceeded_quota(at.tenant, {"output_bytes": size})
    if exceeded is not None:
        raise quota_error(exceeded)
    return session.profile.created_by


class _Storing:
    """Stores the large files of one prompt."""

    def __init__(self, context: CommandContext, at: Address) -> None:
        self._context = context
        self._at = at
        self._store = context.eventlog.attachments

    async def resolve(self, index: int, file: PromptFile) -> PromptFile:
        """The file as the log stores it."""
        uploaded = attachment_id(file.uri)
        if uploaded is not None:
            return await self._find_uploaded(index, file, uploaded)
        parsed = parse_data_uri(file.uri)
        if parsed is None or not self._is_stored(file.mime, parsed.content):
            return file
        # Stored text is UTF-8, so nothing has to remember its character set.
        content = parsed.content
        if media_kind(file.mime) == "text" and parsed.charset is not None:
            content = content.decode(parsed.charset).encode()
        id_ = id_of_content(content)
        await self._put(id_, file.mime, content)
        return _refer_to(file, id_, file.mime, len(content))

    def _is_stored(self, mime: str, content: bytes) -> bool:
        if self._context.eventlog.status.current.level < LEVEL_OF_ATTACHMENTS:
            return False
        if len(content) > self._context.settings.config.ingest.attachment_inline_bytes:
            return True
        size = image_size(mime, content) if media_kind(mime) == "image" else None
        return size is not None and max(size) > IMAGE_SIDE_MAX

    async def _put(self, id_: AttachmentId, mime: str, content: bytes) -> None:
        name = object_name(self._at.session_id, id_)
        if await self._store.stat(self._at.tenant, name) is not None:
            return
        principal = await check_room(self._context, self._at, len(content))
        await self._store.put(self._at, name, _whole(content), mime=mime, principal=principal)

    async def _find_uploaded(self, index: int, file: PromptFile, id_: AttachmentId) -> PromptFile:
        """An uploaded file, read and checked: nobody else has seen all of it."""
        tenant, name = self._at.tenant, object_name(self._at.session_id, id_)
        stored = await self._store.stat(tenant, name)
        if stored is None:
            raise _refuse(index, "no such file was uploaded to this session")
        limit = self._context.settings.config.ingest.attachment_bytes_max
        if stored.bytes > limit:
            raise PayloadTooLarge(f"A file of {stored.bytes} bytes exceeds {limit}")
        content = b"".join([piece async for piece in self._store.get(tenant, name)])
        if sha256(content).hexdigest() != digest_of(id_):
            raise _refuse(index, "the uploaded bytes have another hash than their id")
        lie = find_lie(stored.mime, content)
        if lie is not None:
            raise _refuse(index, lie)
        return _refer_to(file, id_, stored.mime, len(content))


def _refer_to(file: PromptFile, id_: AttachmentId, mime: str, size: int) -> PromptFile:
    uri = attachment_uri(id_)
    content = AttachedContent(mime=mime, bytes=size, uri=uri)
    return file.model_copy(update={"uri": uri, "mime": mime, "content": content})


def _refuse(index: int, reason: str) -> InvalidRequest:
    field = f"prompt.files.{index}.uri"
    return InvalidRequest(f"{field}: {reason}", kind="Body", field=field)


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content
