"""Takes the attachments of a prompt, once: reads, permits, fits and stores what they name.

Whatever goes wrong with a file becomes a note for the model. Only a store that does not answer fails
the request, and the runner asks again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_schema.attachments.reference import (
    attachment_id,
    attachment_uri,
    id_of_content,
    object_name,
)
from fairlead_schema.attachments.request import TakeAttachments, TakenAttachments
from fairlead_schema.ids import TenantId
from fairlead_schema.permission import PermissionRule
from fairlead_schema.prompt import AttachedContent, PromptFile
from fairlead_schema.subjects import Address
from fairlead_service.config.configuration import Config
from fairlead_service.locations import LocationRefused, locate
from fairlead_session.media.data_uri import data_uri
from fairlead_session.people.permission import Denied, Need, approval_rules, permit
from fairlead_tools.attachments.content import NotTaken, RawContent, ReadyContent, prepare_content
from fairlead_tools.attachments.pages import read_page
from fairlead_tools.attachments.places import read_place
from fairlead_tools.files.image import ImageLimits
from fairlead_tools.quotas import TenantQuotas
from fairlead_tools.registry.tool import CallFailed

log = logging.getLogger(__name__)

FILE_S: Final = 20.0
"""How long the content of one file may take."""
AT_ONCE: Final = 4
INLINE_TEXT_BYTES_MAX: Final = 256 * 1024
"""The texts of one prompt take so many bytes of its commit. Others are stored."""

ReadResource: TypeAlias = Callable[[TenantId, str], Awaitable[RawContent]]
"""Reads a resource of a tool server, by its URI. Raises NotTaken."""


class AttachmentTaker:
    """Takes attachments for the runners of one pool."""

    def __init__(self, config: Config, eventlog: EventLog, read_resource: ReadResource) -> None:
        self._config = config
        self._eventlog = eventlog
        self._read_resource = read_resource
        self._limits = ImageLimits.of(config.tools)
        self._quota = TenantQuotas(eventlog, config.quota_policy).outputs

    async def take(self, command: TakeAttachments) -> TakenAttachments:
        """What the model is shown of each file. Raises LogError."""
        saved = await self._eventlog.approvals.get_all(command.tenant, command.project_id)
        approvals, slots = approval_rules(saved), asyncio.Semaphore(AT_ONCE)
        ready = await asyncio.gather(
            *(self._prepare(command, file, approvals, slots) for file in command.files)
        )
        contents: list[AttachedContent] = []
        room = INLINE_TEXT_BYTES_MAX
        for file, content in zip(command.files, ready, strict=True):
            if isinstance(content, str):
                contents.append(AttachedContent(mime=file.mime, note=content))
                continue
            inline = content.text is not None and len(content.data) <= room
            room -= len(content.data) if inline else 0
            contents.append(await self._keep(command, content, inline=inline))
        return TakenAttachments(contents=tuple(contents))

    async def _prepare(
        self,
        command: TakeAttachments,
        file: PromptFile,
        approvals: tuple[PermissionRule, ...],
        slots: asyncio.Semaphore,
    ) -> ReadyContent | str:
        """The content of a file, or the note that says why there is none."""
        try:
            async with asyncio.timeout(FILE_S), slots:
                raw = await self._read(command, file, approvals)
                return await prepare_content(raw, self._limits)
        except (NotTaken, CallFailed) as error:
            return str(error)
        except TimeoutError:
            return f"Its content did not come within {FILE_S:g} s."
        except OSError as error:
            extra = {"session_id": command.session_id, "reason": str(error)}
            log.warning("attachment cannot be read: the model gets a note", extra=extra)
            return "It cannot be read now."

    async def _read(
        self, command: TakeAttachments, file: PromptFile, approvals: tuple[PermissionRule, ...]
    ) -> RawContent:
        stored = attachment_id(file.uri)
        if stored is not None:
            name = object_name(command.session_id, stored)
            pieces = self._eventlog.attachments.get(command.tenant, name)
            data = b"".join([piece async for piece in pieces])
            return RawContent(data, file.name or "", file.mime)
        allow = partial(_permit, self._config.rules(command.agent), approvals)
        scheme = file.uri.partition(":")[0].lower() if ":" in file.uri else "file"
        limit = self._config.ingest.attachment_bytes_max
        if scheme in {"http", "https"}:
            private = self._config.tools.web_private
            return await read_page(file.uri, allow, private=private, bytes_max=limit)
        if scheme == "mcp":
            allow((Need("read", (file.uri,), ()),))
            return await self._read_resource(command.tenant, file.uri)
        if scheme != "file":
            raise NotTaken(f"Attachments of the form {scheme[:40]}: are not read.")
        location = command.location
        place = await asyncio.to_thread(locate, self._config.roots(command.tenant), location)
        if isinstance(place, LocationRefused):
            raise NotTaken(place.message)
        return await read_place(location.directory, place, file.uri, allow, bytes_max=limit)

    async def _keep(
        self, command: TakeAttachments, content: ReadyContent, *, inline: bool
    ) -> AttachedContent:
        """The content in the form that the log stores: small inline, large by reference."""
        size, mime, note = len(content.data), content.mime, content.note
        if inline:
            return AttachedContent(mime=mime, bytes=size, text=content.text, note=note)
        if content.text is None and size <= self._config.ingest.attachment_inline_bytes:
            uri = data_uri(mime, content.data)
            return AttachedContent(mime=mime, bytes=size, uri=uri, note=note)
        at = Address(command.tenant, command.session_id)
        id_ = id_of_content(content.data)
        name = object_name(command.session_id, id_)
        if await self._eventlog.attachments.stat(at.tenant, name) is None:
            reached = await self._quota.find_reached_quota(at.tenant, command.principal)
            if reached is not None:
                return AttachedContent(mime=mime, note=f"It is not stored: {reached.sentence}.")
            await self._eventlog.attachments.put(
                at, name, _whole(content.data), mime=mime, principal=command.principal
            )
            self._quota.add(at.tenant, size, command.principal)
            if (await self._eventlog.log.end(at)).position == 0:
                raise LogError("the session was purged while its attachments were taken")
        return AttachedContent(mime=mime, bytes=size, uri=attachment_uri(id_), note=note)


def _permit(
    rules: tuple[PermissionRule, ...],
    approvals: tuple[PermissionRule, ...],
    needs: tuple[Need, ...],
) -> None:
    refusal = permit(rules, approvals, (), needs)
    if isinstance(refusal, Denied):
        raise NotTaken(f"{refusal.message}.")
    if refusal is not None:
        raise NotTaken(
            f"It needs permission ({refusal.need.action}): the tool that reads it asks for it."
        )


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content
