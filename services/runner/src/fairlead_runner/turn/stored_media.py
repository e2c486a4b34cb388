"""Puts the bytes of stored attachments into a request, just before the request leaves."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from fairlead_eventlog.register_ports import OutputStore
from fairlead_schema.attachments.reference import attachment_id, object_name
from fairlead_schema.ids import AttachmentId
from fairlead_schema.provider.request import MediaPart, ModelRequest, TextPart, Turn, UserTurn
from fairlead_schema.subjects import Address
from fairlead_session.media.attachment_parts import (
    left_out_part,
    missing_part,
    stored_text,
    untaken_part,
)
from fairlead_session.media.data_uri import data_uri
from fairlead_session.media.kind import media_kind

REQUEST_BYTES_MAX: Final = 20 * 1024 * 1024
"""Providers refuse a request of more than about 30 MB, and base64 is a third longer."""
CACHE_BYTES_MAX: Final = 64 * 1024 * 1024


class StoredMedia:
    """Reads stored attachments, and keeps those that were read last."""

    def __init__(self, attachments: OutputStore, *, cache_bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._attachments = attachments
        self._cache_bytes_max = cache_bytes_max
        self._cached_bytes = 0
        self._cached: OrderedDict[tuple[Address, AttachmentId], bytes] = OrderedDict()

    async def inline(
        self, at: Address, request: ModelRequest, inputs: frozenset[str] | None
    ) -> ModelRequest:
        """The request with all content in it, for a model with these inputs. Raises LogUnavailable.

        The newest files come first: beyond the size that providers take, older files become notes.
        """
        if not _have_media(request.turns):
            return request
        room = REQUEST_BYTES_MAX
        turns: list[Turn] = []
        for turn in reversed(request.turns):
            if isinstance(turn, UserTurn) and _has_media(turn):
                content: list[TextPart | MediaPart] = []
                for part in turn.content:
                    inlined = await self._inline_part(at, part, inputs, room)
                    content.append(inlined)
                    room -= _size(inlined)
                turns.append(UserTurn(tuple(content)))
            else:
                turns.append(turn)
        return replace(request, turns=tuple(reversed(turns)))

    async def _inline_part(
        self,
        at: Address,
        part: TextPart | MediaPart,
        inputs: frozenset[str] | None,
        room: int,
    ) -> TextPart | MediaPart:
        if isinstance(part, TextPart):
            return part
        kind, id_ = media_kind(part.mime), attachment_id(part.uri)
        if kind != "text" and inputs is not None and kind not in inputs:
            return untaken_part(part)
        if id_ is None:
            return part
        if kind != "text" and part.bytes > room:
            return left_out_part(part)
        content = await self._read(at, id_)
        if content is None:
            return missing_part(part)
        if kind == "text":
            return stored_text(part, content)
        return MediaPart(data_uri(part.mime, content), part.mime, part.name)

    async def _read(self, at: Address, id_: AttachmentId) -> bytes | None:
        cached = self._cached.get((at, id_))
        if cached is not None:
            self._cached.move_to_end((at, id_))
            return cached
        name = object_name(at.session_id, id_)
        if await self._attachments.stat(at.tenant, name) is None:
            return None
        content = b"".join([piece async for piece in self._attachments.get(at.tenant, name)])
        self._cached[at, id_] = content
        self._cached_bytes += len(content)
        while self._cached_bytes > self._cache_bytes_max:
            self._cached_bytes -= len(self._cached.popitem(last=False)[1])
        return content


def _size(part: TextPart | MediaPart) -> int:
    """About the bytes of a part before base64."""
    return len(part.uri) * 3 // 4 if isinstance(part, MediaPart) else 0


def _have_media(turns: Iterable[Turn]) -> bool:
    # Every request of a long session looks at every turn, so this is a plain loop.
    for turn in turns:
        if type(turn) is UserTurn:
            for part in turn.content:
                if type(part) is MediaPart:
                    return True
    return False


def _has_media(turn: UserTurn) -> bool:
    return _have_media((turn,))
